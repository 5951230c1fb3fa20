"""A real ComfyUI in a process of its own, and a proxy that loses its answers."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Self

# A checkout of ComfyUI with its environment in `venv`.
CHECKOUT = os.environ.get("COMFYUI", "")
_START_S = 300.0
_PIECE = 65_536


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RealComfy:
    """One server, with the slow node of the tests, on a CPU."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options, self.port = folder, options, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        nodes = folder / "custom_nodes"
        nodes.mkdir(parents=True)
        shutil.copy(Path(__file__).parent / "slow_node.py", nodes)
        self.process: subprocess.Popen | None = None

    @property
    def log(self) -> str:
        return (self.folder / "comfyui.log").read_text(errors="replace")

    @property
    def posts(self) -> int:
        """How many jobs it was given, over all its lives."""
        return self.log.count("got prompt")

    @property
    def runs(self) -> int:
        """How many jobs it ended."""
        return self.log.count("Prompt executed in")

    def start(self) -> None:
        checkout = Path(CHECKOUT)
        command = [checkout / "venv/bin/python", "main.py", "--cpu", "--port", str(self.port)]
        with (self.folder / "comfyui.log").open("a") as log:
            self.process = subprocess.Popen(
                [*command, "--base-directory", self.folder, *self.options],
                cwd=checkout,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + _START_S
        while time.monotonic() < until and self.process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/system_stats", timeout=5).close()
                return
            time.sleep(0.2)
        raise AssertionError(self.log[-3_000:])

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None


class Proxy:
    """Passes everything on, but ends or holds the answers to submits on request."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        # "cut" or "hold", for the next answer.
        self.spoils = ""
        self.seen = asyncio.Event()
        self.serving: list[asyncio.Task] = []

    async def __aenter__(self) -> Self:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        for one in self.serving:
            one.cancel()
        await asyncio.gather(*self.serving, return_exceptions=True)

    async def _serve(self, reader, writer) -> None:
        self.serving.append(asyncio.current_task())
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        spoiled = asyncio.Event()
        try:
            await asyncio.gather(
                self._pass(reader, up_writer, spoiled, is_request=True),
                self._pass(up_reader, writer, spoiled, is_request=False),
            )
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for one in (writer, up_writer):
                one.close()
                with contextlib.suppress(OSError):
                    await one.wait_closed()

    async def _pass(self, source, target, spoiled, *, is_request: bool) -> None:
        while piece := await source.read(_PIECE):
            if is_request and self.spoils and piece.startswith(b"POST /prompt"):
                spoiled.set()
            if not is_request and spoiled.is_set():
                how, self.spoils = self.spoils, ""
                self.seen.set()
                await asyncio.sleep(3_600 if how == "hold" else 0)
                break
            target.write(piece)
            await target.drain()
        target.close()
