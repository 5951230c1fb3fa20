"""What a process asks of Linux for itself: who may look into it, and what it gives up."""

import contextlib
import ctypes
import os
import sys

_PR_SET_DUMPABLE = 4  # linux/prctl.h
_CAPABILITY_VERSION = 0x20080522  # linux/capability.h
_CAPABILITY_SETS = 6  # effective, permitted and inheritable, of 32 bits twice


def prctl(option: int, *arguments: int) -> int:
    """Call `prctl`; raises `OSError` where the kernel refuses, or there is no Linux."""
    if sys.platform != "linux":
        raise OSError("prctl is a call of Linux")
    words = (*arguments, 0, 0, 0, 0)[:4]
    libc = ctypes.CDLL(None, use_errno=True)
    done: int = libc.prctl(option, *map(ctypes.c_ulong, words))
    if done < 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")
    return done


def hide_memory(*, hidden: bool = True) -> None:
    """Keep other processes of the same user from reading this one, attaching to it, or its `/proc`.

    It also leaves no core dump, and gives its own files in `/proc` to root. Linux only.
    """
    with contextlib.suppress(OSError):
        prctl(_PR_SET_DUMPABLE, int(not hidden))


def drop_capabilities() -> None:
    """Leave this process no more rights than any user has, although root runs it. Linux only."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)  # 0: this process
    nothing = (ctypes.c_uint32 * _CAPABILITY_SETS)()
    if libc.capset(header, nothing) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
