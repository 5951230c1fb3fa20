"""A checkout of the gateway to measure: this one, or an older one."""

import atexit
import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import attrs

BENCH = Path(__file__).parent
# A checkout's own code writes its database: older code cannot read a newer schema.
_COMPLETED_TASK = """
import asyncio, pathlib, sys
from part_http import completed_task
asyncio.run(completed_task(pathlib.Path(sys.argv[1]), sys.argv[2]))
"""
_NAMES = """
import attrs
from gateway.settings import Settings
print(*attrs.fields_dict(Settings))
"""


@attrs.frozen
class Tree:
    """A checkout and its Python."""

    name: str
    root: Path
    python: str

    @property
    def sources(self) -> list[str]:
        """The import path, with the plugin that sells the instant endpoint."""
        parts = ("", "providers", "plugins", "bench/plugin")
        return [str(self.root / part) for part in parts]

    def knows(self, setting: str) -> bool:
        """Return whether this tree has a setting."""
        return setting in _settings_of(self)

    def write_completed_task(self, data: Path, task_id: str) -> None:
        """Make a database with one completed task, by this tree's own code."""
        arguments = [self.python, "-c", _COMPLETED_TASK, str(data), task_id]
        made = subprocess.run(arguments, cwd=self.root / "bench", check=False)
        if made.returncode:
            raise SystemExit(f"{self.name}: its bench/ writes no completed task to poll, see above")

    @property
    def servers(self) -> list[dict[str, str]]:
        """The settings for each HTTP server that this tree can run on."""
        if not self.knows("server"):
            return [{}]
        found = ["hypercorn"]
        arguments = [self.python, "-c", "import uvicorn"]
        if subprocess.run(arguments, capture_output=True, check=False).returncode == 0:
            found.append("uvicorn")
        return [{"server": name} for name in found]


HERE = Tree("this tree", BENCH.parent, sys.executable)


def tree_at(path: Path) -> Tree:
    """Return another checkout: a copy, run with the original's `.venv`.

    So the measurements write nothing to the original, and the copy's modules are compiled once,
    like ours.
    """
    python = path / ".venv/bin/python"
    if not python.exists():
        raise SystemExit(f"{path} has no .venv/bin/python: run `make install` there")
    copy = Path(tempfile.mkdtemp(prefix="gateway-bench-", dir="/var/tmp"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    for part in ("gateway", "providers", "plugins", "static", "bench"):
        shutil.copytree(
            path / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", ".peers")
        )
    return Tree(f"old ({path.name})", copy, str(python))


@functools.cache
def _settings_of(tree: Tree) -> set[str]:
    """Return the names of a tree's settings, as that tree declares them."""
    arguments = [tree.python, "-B", "-c", _NAMES]
    found = subprocess.run(arguments, cwd=tree.root, capture_output=True, text=True, check=True)
    return set(found.stdout.split())
