"""The memory of this machine, or of the control group that limits this process."""

import contextlib
import functools
import os
from pathlib import Path

_GROUPS = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")
# The files of a group's limits, by the version of the control groups (cgroups(7)). Above
# `memory.high` the kernel slows a group down.
_LIMITS_V2, _LIMITS_V1 = ("memory.max", "memory.high"), ("memory.limit_in_bytes",)
# Memory that the gateway's own process needs, for code, request bodies and results.
_GATEWAY_BYTES = 350_000_000


@functools.cache
def find_memory_bytes() -> int:
    """Return the memory that this process and its children may use."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_read_limits()])


def find_budget_bytes() -> int:
    """Return this machine's memory without the gateway's own, or half of a small machine's."""
    machine_bytes = find_memory_bytes()
    return max(machine_bytes - _GATEWAY_BYTES, machine_bytes // 2)


def _read_limits() -> list[int]:
    """Return the limits of this process's groups and of those around them."""
    # A container may have its own group as the root, and still see its path on the host.
    files = _find_files(_ROOT, "", _LIMITS_V2) | _find_files(_ROOT / "memory", "", _LIMITS_V1)
    for controllers, path in _read_groups():
        if not controllers:
            files |= _find_files(_ROOT, path, _LIMITS_V2)
        elif "memory" in controllers.split(","):
            files |= _find_files(_ROOT / "memory", path, _LIMITS_V1)
    limits = []
    for file in files:
        # A group without a limit has the text "max", or more bytes than any machine.
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(file.read_text()))
    return limits


def _read_groups() -> list[tuple[str, str]]:
    """Return the controllers and the path of each group of this process."""
    try:
        lines = [line.split(":", 2) for line in _GROUPS.read_text().splitlines()]
    except (OSError, ValueError):
        return []
    return [(line[1], line[2]) for line in lines if len(line) == 3]  # noqa: PLR2004 - fields


def _find_files(root: Path, path: str, names: tuple[str, ...]) -> set[Path]:
    group = Path(path.lstrip("/"))
    return {root / one / name for one in (group, *group.parents) for name in names}
