"""The contracts of the embedded chain: Vyper sources and their compiled artefacts.

The artefacts are committed, so the demo needs no compiler. After changing a source, rebuild them
with the development dependency vyper:

    python -m gateway_demo.chain.contracts
"""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import attrs

CONTRACT_NAMES: Final = (
    *("PlayUSDC", "Multicall", "SmartAccount", "AccountFactory"),
    *("BaseAccount", "BaseAccountFactory"),
)
# Argument names that Vyper does not allow, by their replacements in the sources.
_REAL_NAMES: Final = {"frm": "from", "amount": "value"}
_INIT_CODE_LENGTH: Final = 10  # bytes


@attrs.frozen(kw_only=True)
class Contract:
    """A compiled contract without a constructor, so its code fits any address."""

    name: str
    compiler: str
    source_sha256: str
    abi: list[dict[str, Any]] = attrs.field(repr=False)
    runtime: bytes = attrs.field(repr=False)

    @property
    def creation(self) -> bytes:
        """The data of a deploying transaction: init code that returns `runtime`."""
        size = len(self.runtime).to_bytes(2, "big")
        # PUSH2 size, DUP1, PUSH1 10, RETURNDATASIZE (0), CODECOPY, RETURNDATASIZE (0), RETURN
        return (
            b"\x61"
            + size
            + bytes([0x80, 0x60, _INIT_CODE_LENGTH])
            + b"\x3d\x39\x3d\xf3"
            + self.runtime
        )

    def to_json(self) -> str:
        """Return the artefact as JSON."""
        fields = {
            "name": self.name,
            "compiler": self.compiler,
            "sourceSha256": self.source_sha256,
            "abi": self.abi,
            "runtime": "0x" + self.runtime.hex(),
        }
        return json.dumps(fields, indent=1) + "\n"


def load(name: str) -> Contract:
    """Read a committed artefact."""
    fields = json.loads(_find_folder().joinpath(f"{name}.json").read_text("utf-8"))
    return Contract(
        name=fields["name"],
        compiler=fields["compiler"],
        source_sha256=fields["sourceSha256"],
        abi=fields["abi"],
        runtime=bytes.fromhex(fields["runtime"][2:]),
    )


def source(name: str) -> str:
    """Read a contract's Vyper source."""
    return _find_folder().joinpath(f"{name}.vy").read_text("utf-8")


def build(name: str) -> Contract:
    """Compile a source.

    Raises `ImportError` if vyper is not installed.
    """
    # A development dependency, which the demo does not need.
    import vyper  # noqa: PLC0415

    text = source(name)
    output = vyper.compile_code(text, output_formats=["abi", "bytecode_runtime"])
    return Contract(
        name=name,
        compiler=f"vyper {vyper.__version__}",
        source_sha256=hashlib.sha256(text.encode()).hexdigest(),
        abi=_make_published_abi(output["abi"]),
        runtime=bytes.fromhex(output["bytecode_runtime"][2:]),
    )


def _make_published_abi(compiled: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the ABI with USDC's argument names, and the overload that `__default__` implements."""
    abi = [_rename_arguments(entry) for entry in compiled]
    for entry in list(abi):
        if entry.get("name") == "transferWithAuthorization":
            head = [item for item in entry["inputs"] if item["name"] not in {"v", "r", "s"}]
            abi.append({**entry, "inputs": [*head, {"name": "signature", "type": "bytes"}]})
    return abi


def _rename_arguments(entry: dict[str, Any]) -> dict[str, Any]:
    inputs = [
        {**item, "name": _REAL_NAMES.get(item["name"], item["name"])}
        for item in entry.get("inputs", [])
    ]
    return {**entry, "inputs": inputs} if "inputs" in entry else entry


def _find_folder() -> Traversable:
    return resources.files("gateway_demo").joinpath("contracts")


def main() -> None:
    """Compile every contract and write its artefact."""
    folder = Path(__file__).parents[1] / "contracts"
    for name in CONTRACT_NAMES:
        (folder / f"{name}.json").write_text(build(name).to_json(), "utf-8")


if __name__ == "__main__":
    main()
