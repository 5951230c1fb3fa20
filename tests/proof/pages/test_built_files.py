"""The committed files of the pages match a fresh `make frontend`."""

import json
from pathlib import Path

from tests.proof.pages.conftest import FRONTEND, npm

BUILT = FRONTEND.parent / "static" / "web"


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_build_of_frontend_gives_the_committed_files(frontend, tmp_path):
    npm(frontend, "node", "build.mjs", str(tmp_path / "web"))
    made, kept = _files(tmp_path / "web"), _files(BUILT)
    assert made.keys() == kept.keys()
    assert [name for name in made if made[name] != kept[name]] == []


def test_the_types_are_right(frontend):
    npm(frontend, "npm", "run", "--silent", "check")


def test_the_lock_file_names_no_registry_and_every_hash():
    lock = json.loads((FRONTEND / "package-lock.json").read_text())
    packages = [found for name, found in lock["packages"].items() if name]
    assert packages
    assert not [found for found in packages if "resolved" in found]
    assert all(found["integrity"].startswith("sha512-") for found in packages)
