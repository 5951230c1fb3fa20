"""The committed files of the pages match a fresh `make frontend`."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# npm's errors without a network.
_UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT")
FRONTEND, BUILT = ROOT / "frontend", ROOT / "static" / "web"


@pytest.fixture(scope="module")
def frontend(tmp_path_factory):
    """A copy of frontend/ with its packages; skips without Node or the registry."""
    if shutil.which("npm") is None:
        pytest.skip("missing: npm (Node 20 or later)")
    copy = tmp_path_factory.mktemp("build") / "frontend"
    shutil.copytree(FRONTEND, copy, ignore=shutil.ignore_patterns("node_modules"))
    if (FRONTEND / "node_modules" / ".installed").exists():
        (copy / "node_modules").symlink_to(FRONTEND / "node_modules")
    else:
        _run(copy, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", may_fail=True)
    return copy


def _run(folder: Path, *command: str, may_fail: bool = False) -> None:
    done = subprocess.run(
        command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False
    )
    unreachable = any(code in done.stderr + done.stdout for code in _UNREACHABLE)
    if done.returncode and may_fail and unreachable:
        pytest.skip("npm cannot reach its registry")
    assert done.returncode == 0, done.stdout + done.stderr


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_build_of_frontend_gives_the_committed_files(frontend, tmp_path):
    _run(frontend, "node", "build.mjs", str(tmp_path / "web"))
    made, kept = _files(tmp_path / "web"), _files(BUILT)
    assert made.keys() == kept.keys()
    assert [name for name in made if made[name] != kept[name]] == []


def test_the_types_are_right(frontend):
    _run(frontend, "npm", "run", "--silent", "check")


def test_the_lock_file_names_no_registry_and_every_hash():
    lock = json.loads((FRONTEND / "package-lock.json").read_text())
    packages = [found for name, found in lock["packages"].items() if name]
    assert packages
    assert not [found for found in packages if "resolved" in found]
    assert all(found["integrity"].startswith("sha512-") for found in packages)
