"""Entry points of installed packages, found without importing a plugin."""

import functools
import importlib.metadata
import sys
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import Any


def entry_points(group: str) -> EntryPoints:
    """Return the entry points of a group.

    Reading the metadata of all packages takes some 10 ms, and a start needs two groups: it is
    cached until a folder of packages changes.
    """
    folders = [Path(folder) for folder in sys.path]
    changed = tuple((folder, folder.stat().st_mtime_ns) for folder in folders if folder.is_dir())
    found: EntryPoints = _read(changed).select(group=group)
    return found


@functools.lru_cache(maxsize=8)
def _read(_folders: tuple[tuple[Path, int], ...]) -> Any:
    # Python 3.11 has another type for all groups together; both have `select`.
    return importlib.metadata.entry_points()
