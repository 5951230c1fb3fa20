"""Starts, watches and stops the demo's two processes: the embedded chain and the gateway."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import attrs

from gateway_demo.tour.errors import DemoError

# The demo's only address; no setting changes it.
HOST = "127.0.0.1"
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
# 18 seconds were measured on a slow machine without compiled files.
_READY_S = 60.0
_POLL_S = 0.02
# In this time the gateway finishes its work in progress.
_STOP_S = 15.0
_TAIL_LINES = 15
_NEARBY_PORTS = 50


@attrs.frozen(kw_only=True)
class Child:
    """A process of the demo, and the file with its output."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, name: str, arguments: list[str], folder: Path, **settings: str) -> "Child":
        """Start `chain` or `gateway` in `folder`; the process exits when the demo does."""
        log = folder / f"{name}.log"
        with log.open("wb") as output:
            # The folder has no gateway.toml.
            environment = _make_environment(settings)
            process = open_child([name, *arguments], folder, environment, output)
        return cls(name=name, log=log, process=process)

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        """Wait until `is_ready`; raises `DemoError` if the process exits or is too slow."""
        deadline = time.monotonic() + _READY_S
        while not is_ready():
            self.check()
            if time.monotonic() > deadline:
                late = f"The {self.name} did not start within {_READY_S:.0f} seconds."
                raise DemoError(late, log=self.tail())
            time.sleep(_POLL_S)

    def check(self) -> None:
        """Raise `DemoError` if the process has exited."""
        code = self.process.poll()
        if code is not None:
            raise DemoError(
                f"The {self.name} exited unexpectedly (exit code {code}).", log=self.tail()
            )

    def tail(self) -> str:
        """Return the last lines of the process's output, without those of level info."""
        lines = self.log.read_text(errors="replace").splitlines()
        relevant = [line for line in lines if '"level": "info"' not in line]
        return "\n".join(relevant[-_TAIL_LINES:])

    def stop(self) -> None:
        """Stop the process and wait for it."""
        self.process.terminate()
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


def open_child(
    words: list[str], folder: Path, environment: Mapping[str, str], output: IO[bytes] | None
) -> subprocess.Popen[bytes]:
    """Run `gateway_demo.tour.child`, which exits when this process does.

    Without `output`, it writes to the terminal. In its own session the child does not get the
    terminal's Ctrl-C, which this process handles.
    """
    # Module and arguments are our own. With -P, a file in the folder hides no library.
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", "-m", "gateway_demo.tour.child", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        start_new_session=True,
    )


def _make_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return our environment with `settings`, without other settings and proxies.

    The child runs in another folder and a checkout may not be installed, so it gets our import
    path.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GATEWAY_") and name.lower() not in _PROXIES
    }
    given = {f"GATEWAY_{name.upper()}": value for name, value in settings.items()}
    return kept | given | {"PYTHONPATH": import_path(), "PYTHONUNBUFFERED": "1"}


def import_path() -> str:
    """Return this process's import path, for a child in another folder."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)


def ignored_settings() -> list[str]:
    """Return the names of the gateway's settings in the environment."""
    return sorted(name for name in os.environ if name.startswith("GATEWAY_"))


def choose_port(wanted: int, option: str, *, taken: int = 0, command: str = "gateway demo") -> int:
    """Return a free port: `wanted`, or any for 0. `taken` is the other process's port.

    Raises `DemoError`, which suggests a free port for the command's option.
    """
    if wanted and wanted == taken:
        why = f"--port and --rpc-port are both {wanted}"
    else:
        try:
            return _try_port(wanted)
        except PermissionError:
            why = f"Port {wanted} on {HOST} needs an administrator"
        except OverflowError:
            why = f"There is no port {wanted}"
        except OSError:
            why = f"Port {wanted} on {HOST} is in use"
    raise DemoError(f"{why}; choose another: {command} {option} {_find_nearby(wanted, taken)}")


def _find_nearby(port: int, taken: int) -> int:
    for candidate in range(port + 1, port + _NEARBY_PORTS):
        try:
            if candidate != taken:
                return _try_port(candidate)
        except (OSError, OverflowError):
            continue
    return _try_port(0)


def _try_port(port: int) -> int:
    """Listen on a port briefly and return it; raises `OSError` if that fails."""
    with socket.socket() as probe:
        # On Windows this option would allow a port that is in use.
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        probe.listen()
        bound: int = probe.getsockname()[1]
    return bound
