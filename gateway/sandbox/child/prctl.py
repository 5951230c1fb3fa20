"""Hides this process's memory and drops its capabilities, on Linux."""

import contextlib
import ctypes
import os
import sys

# linux/prctl.h
_PR_SET_DUMPABLE = 4
# linux/capability.h
_CAPABILITY_VERSION = 0x20080522
# Effective, permitted and inheritable, each of two 32-bit words.
_CAPABILITY_WORDS = 6


def prctl(option: int, *arguments: int) -> int:
    """Call `prctl`. Raises `OSError` if the kernel refuses, or on other systems than Linux."""
    if sys.platform != "linux":
        raise OSError("prctl is a call of Linux")
    words = (*arguments, 0, 0, 0, 0)[:4]
    libc = ctypes.CDLL(None, use_errno=True)
    done: int = libc.prctl(option, *map(ctypes.c_ulong, words))
    if done < 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")
    return done


def hide_memory(*, hidden: bool = True) -> None:
    """Keep processes of the same user from reading this one's memory or its `/proc`.

    It also leaves no core dump then. Linux only.
    """
    with contextlib.suppress(OSError):
        prctl(_PR_SET_DUMPABLE, int(not hidden))


def drop_capabilities() -> None:
    """Drop all capabilities, even if root runs this process. Linux only.

    Raises `OSError` if the kernel refuses.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    # Process 0 is this process.
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * _CAPABILITY_WORDS)()
    if libc.capset(header, nothing) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
