"""A copy of frontend/, in which Node builds the pages' files."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

# npm's errors without a network.
_UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT")
FRONTEND = Path(__file__).parents[3] / "frontend"


def copy_frontend(folder: Path) -> Path:
    """Copy frontend/ with its packages; skips without Node or the registry."""
    if shutil.which("npm") is None:
        pytest.skip("missing: npm (Node 20 or later)")
    copy = folder / "frontend"
    shutil.copytree(FRONTEND, copy, ignore=shutil.ignore_patterns("node_modules"))
    if (FRONTEND / "node_modules" / ".installed").exists():
        (copy / "node_modules").symlink_to(FRONTEND / "node_modules")
    else:
        run(copy, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", may_fail=True)
    return copy


def run(folder: Path, *command: str, may_fail: bool = False) -> str:
    """Run a command in a folder, and return its output."""
    done = subprocess.run(
        command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False
    )
    unreachable = any(code in done.stderr + done.stdout for code in _UNREACHABLE)
    if done.returncode and may_fail and unreachable:
        pytest.skip("npm cannot reach its registry")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
