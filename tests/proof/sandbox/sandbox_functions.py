"""Functions that tests call in a sandbox; imported by the warmed process, never by the gateway."""

import os
import signal
import socket
import sys
import time
import zlib
from pathlib import Path

from gateway.sandbox.child import fork_server, work
from gateway.sandbox.errors import SandboxRefusal

# The document parser's facts about a file with text.
_READ = b'{"has_text": true, "notes": [], "pages": 1, "textless": {}}'

warmed = []


def warm() -> None:
    import gateway.sandbox.limits

    assert gateway.sandbox.limits
    warmed.append("yes")


def starve_briefly() -> None:
    """Give starved children half a second instead of ten."""
    fork_server._STARVED_S = 0.5


def pack_briefly() -> None:
    """Give up packing a buyer's picture after one second instead of seven."""
    # Here, because it loads Pillow.
    from gateway.sandbox import sent_pictures_child

    sent_pictures_child._TRIED_S = 1.0
    sent_pictures_child.load_decoders()


def tell_warmed() -> bytes:
    return repr(warmed).encode()


def join(*arguments) -> bytes:
    return b"|".join(repr(argument).encode() for argument in arguments)


def echo(data: bytes) -> bytes:
    return data


def parts(count: str) -> list[bytes]:
    return [b"x" * at for at in range(int(count))]


def refuse(sentence: str) -> bytes:
    raise SandboxRefusal(sentence)


def fail(text: str) -> bytes:
    raise KeyError(text)


def answer_nothing() -> None:
    return None


def sleep() -> bytes:
    time.sleep(1000)
    return b""


def sleep_on(*_: bytes | str) -> bytes:
    return sleep()


def sleep_on_checks(action: str, about: str, data: bytes) -> list[bytes]:
    """Work as the document parser does, except that a check does not end."""
    return [sleep()] if action == "check" else [_READ, b"read"]


def die_on_checks(action: str, about: str, data: bytes) -> list[bytes]:
    """Work as the document parser does, except that a check is killed as by the kernel."""
    if action == "check":
        os.kill(os.getpid(), signal.SIGKILL)
    return [_READ, b"read"]


def sleep_unless(word: str) -> bytes:
    return word.encode() or sleep()


def work_a_while(cpu_s: str) -> bytes:
    while time.process_time() < float(cpu_s):
        zlib.crc32(b"x" * 1_000_000)
    return b"done"


def spin() -> bytes:
    while True:
        zlib.crc32(b"x" * 1_000_000)


def eat() -> bytes:
    return bytes(2_000_000_000)


def abort() -> bytes:
    os.abort()


def kill_itself() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def end_by(number: str) -> bytes:
    signal.signal(int(number), signal.SIG_DFL)
    os.kill(os.getpid(), int(number))
    return sleep()


def end_within_the_answer(number: str, place: str) -> list[bytes]:
    """Begin an answer of two parts, then end by a signal: between the parts, or in the second."""
    answer = work.HEAD.pack(work.ANSWER, 2) + work.pack(work.BYTES, b"whole")
    if place == "within":
        answer += work.HEAD.pack(work.BYTES, 1000) + b"half"
    os.write(3, answer)
    return [end_by(number)]


def exit_at_once(data: bytes) -> bytes:
    os._exit(7)


def modules() -> bytes:
    return "\n".join(sys.modules).encode()


def environment() -> bytes:
    return "\n".join(f"{name}={value}" for name, value in os.environ.items()).encode()


def own_limits() -> bytes:
    import resource

    names = ("AS", "CPU", "FSIZE", "CORE", "NOFILE")
    return repr({n: resource.getrlimit(getattr(resource, f"RLIMIT_{n}")) for n in names}).encode()


def try_everything() -> bytes:
    """Return everything that could be opened but must not be."""
    done = []
    for name, deed in {
        "read": lambda: Path("/etc/passwd").read_bytes(),
        "write": lambda: Path("/tmp/owned-by-a-sandbox").write_bytes(b""),
        "connect": socket.socket,
        "pipe": os.pipe,
        "peek": lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    }.items():
        try:
            deed()
        except OSError:
            continue
        done.append(name)
    return repr(done).encode()


def use_the_gateway() -> bytes:
    import gateway

    return str(gateway.usdc("0.02")).encode()


def open_in_place_of(path: str) -> bytes:
    """Act like smuggled code: first free a file descriptor."""
    os.close(0)
    return os.read(os.open(path, os.O_RDONLY), 1_000_000)


def leave_a_child_behind() -> bytes:
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    return str(pid).encode()


def hold_memory(megabytes: str) -> bytes:
    """Hold memory for two seconds; return when it began and ended, by a clock of the machine."""
    began = time.monotonic()
    held = b"x" * (int(megabytes) * 10**6)
    time.sleep(2)
    return f"{began} {time.monotonic() + 0 * len(held)}".encode()


def take_addresses(count: str) -> bytes:
    """Take address space, but no memory."""
    return b"taken" if bytes(int(count)) else b""


def end_with(report: str) -> bytes:
    """End with a forged report, as an exploited child can."""
    if report:
        os.write(3, work.pack(work.END, report.encode()))
        os._exit(0)
    return b"done"
