"""The memory of this machine, or of the control group that limits this process."""

import contextlib
import functools
import os
from pathlib import Path

_GROUPS = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")
# The file of a group's limit, by the version of the control groups (cgroups(7)).
_LIMIT_V2, _LIMIT_V1 = "memory.max", "memory.limit_in_bytes"


@functools.cache
def find_memory_bytes() -> int:
    """Return the memory that this process and its children may use."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_read_limits()])


def _read_limits() -> list[int]:
    """Return the limits of this process's groups and of those around them."""
    # A container may have its own group as the root, and still see its path on the host.
    files = {_ROOT / _LIMIT_V2, _ROOT / "memory" / _LIMIT_V1}
    with contextlib.suppress(OSError):
        for line in _GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                files |= _find_files(_ROOT, path, _LIMIT_V2)
            elif "memory" in controllers.split(","):
                files |= _find_files(_ROOT / "memory", path, _LIMIT_V1)
    limits = []
    for file in files:
        # A group without a limit has the text "max", or more bytes than any machine.
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(file.read_text()))
    return limits


def _find_files(root: Path, path: str, name: str) -> set[Path]:
    group = Path(path.lstrip("/"))
    return {root / one / name for one in (group, *group.parents)}
