"""The gateway's side of the warmed process: start it, open conversations, end it."""

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
# The complete environment: an untrusted file must not be able to reach the gateway's secrets. One
# malloc arena per thread would count towards the memory limit, and threads do not survive a fork.
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
# Some builds of Python do not start without it.
_KEPT_VARIABLES = ("LD_LIBRARY_PATH",)


@attrs.define
class WarmedProcess:
    """A warmed process. It ends with this object, or when the gateway dies."""

    control: socket.socket
    process: "subprocess.Popen[bytes]"
    _finalizer: "weakref.finalize[..., WarmedProcess]" = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._finalizer = weakref.finalize(self, _end_process, self.control, self.process)

    @classmethod
    def start(cls, function: str, warm: tuple[str, ...], limits: SandboxLimits) -> "WarmedProcess":
        """Start the process with the gateway's import path, but not its environment.

        `function` and `warm` are as for `Sandbox`. Raises `SandboxLost` if the process cannot be
        started.
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
                # A new session, so that only the gateway receives Ctrl-C.
                process = subprocess.Popen(  # noqa: S603 - a constant command, no shell
                    [sys.executable, "-I", "-W", "ignore", _BOOT, order],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=_ENVIRONMENT | kept,
                    cwd="/",
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise SandboxLost(NOT_STARTED) from error
        return cls(ours, process)

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None

    @contextmanager
    def conversation(self) -> Iterator[socket.socket]:
        """Open a conversation with a new child. Leaving the block kills the child."""
        ours, theirs = socket.socketpair()
        with ours:
            ours.settimeout(0)
            with theirs:
                socket.send_fds(self.control, [b"\0"], [theirs.fileno()])
            yield ours

    def close(self) -> None:
        """End the process and its children."""
        self._finalizer()


def _end_process(control: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    # Once `control` is closed, the process kills its children and exits. If it hangs, the kill ends
    # it, and its children with it.
    control.close()
    process.kill()
    process.wait()
