"""Resource limits of a child, which cannot open any file or socket."""

import contextlib
import os
import resource
import signal
from pathlib import Path

from gateway.sandbox.child import seccomp
from gateway.sandbox.child.machine import find_budget_bytes, find_memory_bytes
from gateway.sandbox.child.prctl import drop_capabilities, hide_memory, prctl
from gateway.sandbox.limits import PAID_NICE

# The memory that a 4K picture takes: the limit on the smallest machine.
_MIN_MEMORY_BYTES = 600_000_000
# From SIGXCPU to SIGKILL.
_GRACE_S = 2

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_OOM_SCORE = Path("/proc/self/oom_score_adj")


def memory_bytes(most: int) -> int:
    """Return a child's address space limit: at most the machine's memory, within bounds.

    Address space is more than the memory in use. See `address_space` for a tighter limit.
    """
    return min(most, max(_MIN_MEMORY_BYTES, find_memory_bytes()))


def address_space(most: int, own_bytes: int, resident_bytes: int) -> int:
    """Return the limit of a child whose warmed process has this address space and memory.

    The child adds no more memory than this machine has for it. So it fails before the kernel has to
    kill a process, also while the gateway is too busy to watch.
    """
    free_bytes = find_budget_bytes() - resident_bytes
    return min(memory_bytes(most), max(_MIN_MEMORY_BYTES, own_bytes + free_bytes))


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; Linux only."""
    with contextlib.suppress(OSError):
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def confine(*, memory: int, cpu_s: int, open_files: int, nice: int = PAID_NICE) -> None:
    """Limit this process irreversibly.

    With `open_files` at 0, open descriptors keep working, but nothing can be opened: no file, no
    socket, and no `/proc` of the gateway. Limits that the system does not support are skipped
    (address space on macOS).
    """
    _offer_to_oom_killer()
    os.nice(nice)
    limits = {
        "RLIMIT_CPU": (cpu_s, cpu_s + _GRACE_S),
        "RLIMIT_AS": (memory, memory),
        "RLIMIT_FSIZE": (0, 0),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_NOFILE": (open_files, open_files),
    }
    for name, limit in limits.items():
        with contextlib.suppress(AttributeError, OSError, ValueError):
            resource.setrlimit(getattr(resource, name), limit)


def _offer_to_oom_killer() -> None:
    """Make this process the OOM killer's first choice, then hide its memory."""
    # A hidden process may not write to its own /proc.
    hide_memory(hidden=False)
    with contextlib.suppress(OSError):
        _OOM_SCORE.write_text("1000")
    hide_memory()


def filter_calls(*, may_read: bool = False) -> None:
    """Restrict this process irreversibly to the system calls that computing needs.

    If the kernel refuses the filter, only the limits apply; `gateway check` warns the operator.
    """
    with contextlib.suppress(OSError):
        drop_capabilities()
    with contextlib.suppress(OSError):
        seccomp.install(may_read=may_read)
