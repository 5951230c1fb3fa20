"""What a child may use of the machine: little, and nothing that can be opened."""

import contextlib
import os
import resource
import signal
from pathlib import Path

from gateway.sandbox.child import seccomp
from gateway.sandbox.child.prctl import drop_capabilities, hide_memory, prctl

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
    with contextlib.suppress(OSError):
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def confine(*, memory: int, cpu_s: int, open_files: int) -> None:
    """Limit this process for good.

    With `open_files` at 0 what is open stays so and nothing can be opened, not even in the place
    of something closed: no file, no socket, and no `/proc` of the gateway. A limit that the system
    does not know or refuses (macOS: address space) is skipped.
    """
    _go_first_where_memory_is_short()
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


def _go_first_where_memory_is_short() -> None:
    """Offer this process to the kernel; it hides its memory from here on."""
    hide_memory(hidden=False)  # a hidden process may not write to its own /proc
    with contextlib.suppress(OSError):
        _OOM_SCORE.write_text("1000")
    hide_memory()


def filter_calls(*, may_read: bool = False) -> None:
    """Leave this process the system calls that computing takes, for good.

    A kernel that refuses leaves it the limits alone; `gateway check` tells the operator.
    """
    with contextlib.suppress(OSError):
        drop_capabilities()
    with contextlib.suppress(OSError):
        seccomp.install(may_read=may_read)
