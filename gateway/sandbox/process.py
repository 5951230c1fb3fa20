"""The warmed process, seen from the gateway: how it is started, spoken to, and ended."""

import json
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from gateway.sandbox.errors import SandboxLost
from gateway.sandbox.limits import SandboxLimits

NOT_STARTED = "The sandboxed process could not be started."
_BOOT = str(Path(__file__).parent / "child" / "boot.py")
_ENVIRONMENT = {  # all of it: a stranger's file must not be able to read the gateway's secrets
    "LANG": "C.UTF-8",
    "MALLOC_ARENA_MAX": "1",  # an arena for each thread would count against the memory limit
    "OMP_NUM_THREADS": "1",  # threads do not survive a fork
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
_KEPT_VARIABLES = ("LD_LIBRARY_PATH",)  # without it some Pythons do not even start


@attrs.define
class Running:
    """A warmed process; ends with this object, and when the gateway dies."""

    control: socket.socket
    process: "subprocess.Popen[bytes]"
    _end: "weakref.finalize[..., Running]" = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._end = weakref.finalize(self, _end, self.control, self.process)

    @classmethod
    def start(cls, function: str, warm: tuple[str, ...], limits: SandboxLimits) -> "Running":
        """Start the process: with our import path, and nothing else of ours.

        Raises `SandboxLost` where the system has no process to spare.
        """
        order = json.dumps(
            {
                "function": function,
                "warm": warm,
                "limits": attrs.asdict(limits),
                "path": [entry or str(Path.cwd()) for entry in sys.path],
            }
        )
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        try:
            with theirs:
                process = subprocess.Popen(  # noqa: S603 - a constant command, no shell
                    [sys.executable, "-I", "-W", "ignore", _BOOT, order],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=_ENVIRONMENT | kept,
                    cwd="/",
                    start_new_session=True,  # Ctrl-C is the gateway's to handle
                )
        except OSError as error:
            ours.close()
            raise SandboxLost(NOT_STARTED) from error
        return cls(ours, process)

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    @contextmanager
    def conversation(self) -> Iterator[socket.socket]:
        """Open a conversation with a new child; leaving, however it happens, kills the child."""
        ours, theirs = socket.socketpair()
        with ours:
            ours.settimeout(0)
            with theirs:
                socket.send_fds(self.control, [b"\0"], [theirs.fileno()])
            yield ours

    def close(self) -> None:
        """End the process and its children."""
        self._end()


def _end(control: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    control.close()  # the process kills its children and leaves
    process.kill()  # in case it does not; its children hear of that, too
    process.wait()
