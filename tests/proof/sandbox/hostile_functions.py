"""Attempts by code that a document has smuggled in.

They do no harm if they succeed: signals are number 0, which only checks the permission.
"""

import ctypes
import os
import platform
import socket
import threading
from pathlib import Path

from gateway.sandbox.child import seccomp, system_calls
from gateway.sandbox.child.prctl import prctl

LIBC = ctypes.CDLL(None, use_errno=True)
OTHER_NUMBERS = {  # of calls that the gateway's own table has no need of
    "capset": (126, 91),
    "execve": (59, 221),
    "memfd_create": (319, 279),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "sched_setaffinity": (203, 122),
    "setsid": (112, 157),
    "shmget": (29, 194),
}
CPU_LIMIT = (ctypes.c_uint64 * 2)(9, 9)  # of which the child has 10 and 12


def raw(name, *arguments):
    """Make a system call; raises `OSError` if it fails."""
    numbers = system_calls.HOSTILE | system_calls.CONDITIONAL | OTHER_NUMBERS
    number = numbers[name][system_calls.MACHINES.index(platform.machine())]
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    found = LIBC.syscall(ctypes.c_long(number), *words)
    if found < 0:
        raise OSError(ctypes.get_errno(), name)
    return found


def read_memory(gateway, secret):
    class Vector(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    own = ctypes.create_string_buffer(16)
    here, there = Vector(ctypes.addressof(own), 16), Vector(secret, 16)
    raw("process_vm_readv", gateway, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)


def leave_a_grandchild(gateway, secret):
    if os.fork() == 0:
        os.setsid()
        os._exit(0)


def start_a_process_like_a_thread(gateway, secret):
    if raw("clone", 17, 0, 0, 0, 0) == 0:  # SIGCHLD, as a fork
        os._exit(0)


def send_signals_as_an_owner(gateway, secret):
    raw("fcntl", 3, 8, gateway)  # F_SETOWN


def connect_what_is_open(gateway, secret):
    conversation = socket.socket(fileno=3)
    try:
        conversation.connect("/x")
    finally:
        conversation.detach()  # the answer takes it


ENDING = {  # the child
    "read the gateway's memory": read_memory,
    "trace the gateway": lambda gateway, secret: raw("ptrace", 0x4206, gateway, 0, 0),  # SEIZE
    "trace the parent": lambda gateway, secret: raw("ptrace", 0x4206, os.getppid(), 0, 0),
    "mount": lambda gateway, secret: raw("mount", 0, 0, 0, 0, 0),
    "have a user namespace": lambda gateway, secret: raw("unshare", 0x10000000),
    "have a ring": lambda gateway, secret: raw(
        "io_uring_setup", 1, ctypes.create_string_buffer(120)
    ),
    "load a program into the kernel": lambda gateway, secret: raw("bpf", 0, 0, 0),
    "have a key": lambda gateway, secret: raw("keyctl", 0, -1, 1),
}
FAILING = {
    "signal the gateway": lambda gateway, secret: os.kill(gateway, 0),
    "signal the parent": lambda gateway, secret: os.kill(os.getppid(), 0),
    "signal everybody": lambda gateway, secret: os.kill(-1, 0),
    "signal by a queue": lambda gateway, secret: raw("rt_sigqueueinfo", gateway, 0, 0),
    "signal by a descriptor": lambda gateway, secret: raw("pidfd_open", gateway, 0),
    "signal as an owner": send_signals_as_an_owner,
    "read the environment": lambda gateway, secret: Path(f"/proc/{gateway}/environ").read_bytes(),
    "open the memory": lambda gateway, secret: os.open(f"/proc/{gateway}/mem", os.O_RDONLY),
    "write a file": lambda gateway, secret: os.open("/tmp/of-a-child", os.O_WRONLY | os.O_CREAT),
    "have a socket": lambda gateway, secret: socket.socket(),
    "connect what is open": connect_what_is_open,
    "execute": lambda gateway, secret: os.execv("/bin/true", ["true"]),
    "leave a grandchild": leave_a_grandchild,
    "leave a process like a thread": start_a_process_like_a_thread,
    "leave the session": lambda gateway, secret: raw("setsid"),
    "outlive the parent": lambda gateway, secret: prctl(1, 0),  # PR_SET_PDEATHSIG
    "be read by others": lambda gateway, secret: prctl(4, 1),  # PR_SET_DUMPABLE
    "have a file in memory": lambda gateway, secret: raw("memfd_create", b"x", 0),
    "have memory that stays": lambda gateway, secret: raw("shmget", 0, 4096, 0o1000),
    "slow the gateway down": lambda gateway, secret: raw("sched_setaffinity", gateway, 0, 0),
    "limit the gateway": lambda gateway, secret: raw("prlimit64", gateway, 0, 0, 0),
    "limit itself less": lambda gateway, secret: raw("prlimit64", 0, 0, CPU_LIMIT, 0),
}


def attempt(name, gateway, secret):
    """Make one of the attempts, and return its result."""
    try:
        (ENDING | FAILING)[name](int(gateway), int(secret))
    except OSError:
        return b"refused"
    return b"done"


def start_a_thread():
    """Return a message from a thread of the child, and whether its calls are filtered."""
    results = []
    thread = threading.Thread(target=lambda: results.append(seccomp.is_installed()))
    thread.start()
    thread.join()
    return repr(results).encode()


seen = []


def look_at_the_warmed_process():
    seen.append(prctl(3))  # PR_GET_DUMPABLE


def tell_what_was_seen():
    return repr(seen).encode()
