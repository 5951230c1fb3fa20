"""Installs a seccomp filter: a child may make only the calls in `system_calls`.

Most other calls fail with EPERM, so that libraries continue without them. A hostile call kills the
process.
"""

import ctypes
import os
import platform
from collections.abc import Mapping

from gateway.sandbox.child import system_calls
from gateway.sandbox.child.prctl import prctl

# linux/prctl.h
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_SECCOMP = 21
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
# PR_SET_NAME, PR_GET_NAME and PR_SET_VMA name threads and memory.
_NAMING = (15, 16, 0x53564D41)

# linux/seccomp.h and asm-generic/errno.h
KILL = 0x80000000
ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
EPERM = _ERRNO | 1
ENOSYS = _ERRNO | 38

# linux/bpf_common.h; _LOAD loads a word of `struct seccomp_data`.
_LOAD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06

# Offsets of the call's number and the architecture in `struct seccomp_data` (linux/seccomp.h).
_NUMBER_AT = 0
_MACHINE_AT = 4
# linux/audit.h
_AUDIT_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# linux/sched.h: the flags with which glibc and musl start a thread.
_CLONE_THREAD = 0x00010000
_THREAD_FLAGS = 0x007D0F00
# fcntl.h: F_GETFD, F_SETFD and F_GETFL. F_SETOWN could direct signals to other processes.
_HARMLESS_FCNTL = (1, 2, 3)
# glibc reads an open file's size with this flag.
_AT_EMPTY_PATH = 0x1000
# O_WRONLY and O_RDWR, O_CREAT, O_TRUNC.
_WRITING = 0o3 | 0o100 | 0o1000

# Code, jump if true, jump if false, operand.
Instruction = tuple[int, int, int, int]


def _load(at: int) -> Instruction:
    return (_LOAD, 0, 0, at)


def _load_argument(index: int) -> Instruction:
    """Load the lower half, because the kernel reads no more of an `int`."""
    return _load(16 + 8 * index)


def _return(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)


def _if_equal(value: int, then: list[Instruction]) -> list[Instruction]:
    return [(_JUMP_EQUAL, 0, len(then), value), *then]


def _allow_values(index: int, values: tuple[int, ...]) -> list[Instruction]:
    tests = [one for value in values for one in _if_equal(value, [_return(ALLOW)])]
    return [_load_argument(index), *tests, _return(EPERM)]


def _refuse_any_bit(index: int, bits: int) -> list[Instruction]:
    return [_load_argument(index), (_JUMP_ANY_BIT, 0, 1, bits), _return(EPERM), _return(ALLOW)]


def _allow_threads() -> list[Instruction]:
    """Allow `clone` for threads, not for processes."""
    return [
        _load_argument(0),
        (_JUMP_ANY_BIT, 0, 1, 0xFFFFFFFF ^ _THREAD_FLAGS),
        _return(EPERM),
        (_JUMP_ANY_BIT, 0, 1, _CLONE_THREAD),
        _return(ALLOW),
        _return(EPERM),
    ]


def _allow_reading_own_limits() -> list[Instruction]:
    """Allow `prlimit64` to read own limits: pid 0 and no new value."""
    # Offsets of the pid, and of both halves of the pointer to the new value.
    halves = (16, 32, 36)
    tests = [test for at in halves for test in (_load(at), (_JUMP_EQUAL, 1, 0, 0), _return(EPERM))]
    return [*tests, _return(ALLOW)]


def _conditional_rules(pid: int, *, may_read: bool) -> Mapping[str, list[Instruction]]:
    open_file_only = [
        _load_argument(3),
        (_JUMP_ANY_BIT, 0, 1, _AT_EMPTY_PATH),
        _return(ALLOW),
        _return(EPERM),
    ]
    rules = {
        "clone": _allow_threads(),
        # The filter cannot see the flags of clone3; the C library falls back to clone.
        "clone3": [_return(ENOSYS)],
        "fcntl": _allow_values(1, _HARMLESS_FCNTL),
        "kill": _allow_values(0, (pid,)),
        # Used by `abort`.
        "tgkill": _allow_values(0, (pid,)),
        "prctl": _allow_values(0, (*_NAMING, _PR_GET_SECCOMP)),
        "prlimit64": _allow_reading_own_limits(),
    }
    if may_read:
        return rules | {
            "open": _refuse_any_bit(1, _WRITING),
            "openat": _refuse_any_bit(2, _WRITING),
        }
    return rules | {"newfstatat": open_file_only}


def program(machine: str, pid: int, *, may_read: bool = False) -> list[Instruction]:
    """Return the filter for process `pid` on one of `system_calls.MACHINES`.

    `may_read` also allows opening files for reading.
    """
    index = system_calls.MACHINES.index(machine)
    allowed = {**system_calls.ALLOWED, **(system_calls.READING if may_read else {})}
    rules = {name: [_return(ALLOW)] for name in allowed}
    rules |= _conditional_rules(pid, may_read=may_read)
    rules |= {name: [_return(KILL)] for name in system_calls.HOSTILE}
    numbers = {**system_calls.CONDITIONAL, **allowed, **system_calls.HOSTILE}
    filtering = [
        _load(_MACHINE_AT),
        (_JUMP_EQUAL, 1, 0, _AUDIT_MACHINES[machine]),
        # Other architectures, and 32-bit mode, number their calls differently.
        _return(KILL),
        _load(_NUMBER_AT),
    ]
    for name, then in rules.items():
        number = numbers[name][index]
        if number is not None:
            filtering += _if_equal(number, then)
    return [*filtering, _return(EPERM)]


class _Instruction(ctypes.Structure):
    """`struct sock_filter` of linux/filter.h."""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jump_if_true", ctypes.c_uint8),
        ("jump_if_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = (
        ("length", ctypes.c_uint16),
        ("instructions", ctypes.POINTER(_Instruction)),
    )


def install(*, may_read: bool = False) -> None:
    """Filter the calls of this process and its threads, irreversibly.

    Does nothing on an unknown architecture. Raises `OSError` if the kernel refuses.
    """
    machine = platform.machine()
    if machine not in system_calls.MACHINES:
        return
    filtering = program(machine, os.getpid(), may_read=may_read)
    instructions = (_Instruction * len(filtering))(*(_Instruction(*one) for one in filtering))
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    wanted = _Program(len(filtering), instructions)
    prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(wanted))


def is_installed() -> bool:
    """Whether the kernel filters this process's calls."""
    try:
        return prctl(_PR_GET_SECCOMP) == _SECCOMP_MODE_FILTER
    except OSError:
        return False


def report() -> bytes:
    """Return `filtered` if the kernel filters this child's calls, else `limited`."""
    return b"filtered" if is_installed() else b"limited"
