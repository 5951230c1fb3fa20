"""What a child may use of the machine: little, and nothing that can be opened."""

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

_MIN_MEMORY_BYTES = 600_000_000  # on however small a machine; what a 4K picture takes
_NICE = 5  # the loop that answers everybody comes first
_GRACE_S = 2  # from SIGXCPU to SIGKILL

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_CGROUP_MEMORY = Path("/sys/fs/cgroup/memory.max")
_OOM_SCORE = Path("/proc/self/oom_score_adj")


def memory_bytes(most: int) -> int:
    """Return the address space of a child: half of the machine's memory, within bounds."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # ValueError: "max"
        machine = min(machine, int(_CGROUP_MEMORY.read_text()))
    return min(most, max(_MIN_MEMORY_BYTES, machine // 2))


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def confine(*, memory: int, cpu_s: int, open_files: int) -> None:
    """Limit this process for good.

    With `open_files` at 0 what is open stays so and nothing can be opened, not even in the place
    of something closed: no file, no socket, and no `/proc` of the gateway. A limit that the system
    does not know or refuses (macOS: address space) is skipped.
    """
    with contextlib.suppress(OSError):
        _OOM_SCORE.write_text("1000")  # where memory is short, this process is the one to go
    os.nice(_NICE)
    limits = {
        "RLIMIT_CPU": (cpu_s, cpu_s + _GRACE_S),  # SIGXCPU, then SIGKILL
        "RLIMIT_AS": (memory, memory),
        "RLIMIT_FSIZE": (0, 0),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_NOFILE": (open_files, open_files),
    }
    for name, limit in limits.items():
        with contextlib.suppress(AttributeError, OSError, ValueError):
            resource.setrlimit(getattr(resource, name), limit)
