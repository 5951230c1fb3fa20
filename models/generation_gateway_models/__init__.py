"""Weights of small models, with their sources and licences (models/README.md)."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Licence:
    """The origin and the licence of one file of weights."""

    name: str
    about: str
    source: str
    licence: str
    text: str
    sha256: str


def weights(name: str) -> Path:
    """Return the path of a file of weights, or of a folder of them.

    Raises LookupError if no installed package contains it.
    """
    if name in _names():
        for folder in _folders():
            if (folder / name).exists():
                return folder / name
    raise LookupError(f"generation-gateway-models contains no weights named {name!r}.")


def licences() -> tuple[Licence, ...]:
    """Return the licences of the installed weights, in the order of names."""
    rows = sorted(_rows(), key=lambda row: str(row["name"]))
    return tuple(_licence(row) for row in rows if _is_installed(row["name"]))


def _is_installed(name: str) -> bool:
    return any((folder / name).exists() for folder in _folders())


def _folders() -> Iterator[Path]:
    yield _HERE / "weights"
    large = find_spec("generation_gateway_models_large")
    if large is not None and large.origin is not None:
        yield Path(large.origin).parent / "weights"


def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _sources()["weights"]
    return rows


def _sources() -> dict[str, Any]:
    return tomllib.loads((_HERE / "sources.toml").read_text(encoding="utf-8"))


def _names() -> set[str]:
    files = {str(row["name"]) for row in _rows()}
    return files | {file.rpartition("/")[0] for file in files if "/" in file}


def _licence(row: dict[str, Any]) -> Licence:
    text = (_HERE / "licences" / row["licence_text"]).read_text(encoding="utf-8")
    return Licence(row["name"], row["about"], row["origin"], row["licence"], text, row["sha256"])
