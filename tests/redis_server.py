"""A Redis server for one test, which may stop, hang and restart it."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

PASSWORD = "correct-horse-battery"
_STARTS_S = 30.0


@attrs.define
class RedisServer:
    """`redis-server` on a free port of this machine, without disk writes."""

    folder: Path
    port: int = attrs.field(init=False)
    _process: subprocess.Popen[bytes] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    @property
    def url(self) -> str:
        """The URL with the password."""
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, empty, and return once it accepts connections."""
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "requirepass": PASSWORD,
            "save": "",
            "appendonly": "no",
            "dir": str(self.folder),
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self._process = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)
        give_up_at = time.monotonic() + _STARTS_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                assert self._process.poll() is None, "redis-server has ended at its start"
                assert time.monotonic() < give_up_at, "redis-server takes no connection"
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """Kill it; its counts are lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """Let it accept connections without responding inside the block."""
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    def ask(self, *words: str) -> object:
        """Return the response to a command, on a new connection."""
        import redis

        with redis.Redis.from_url(self.url, decode_responses=True) as client:
            return client.execute_command(*words)


def run_redis(folder: Path) -> Iterator[RedisServer]:
    """Yield a running server, for a fixture. Skips without Redis."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed (Debian: apt-get install redis-server)")
    pytest.importorskip("redis", reason="the extra `redis` is not installed")
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
