"""Clients that read large responses badly: not at all, slowly, completely, or partly.

Hundreds of them use one gateway on a real socket. A client that reads gets its whole response, no
client gets more, and the buffered bytes stay within their limits.
"""

import asyncio
import contextlib
import random
import socket
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from unittest import mock

import attrs

from gateway import Result, Settings
from gateway.web.server import connection_limits
from gateway.web.server.connection_limits import PIECE_BYTES
from gateway.web.server.serve import listen
from gateway_demo.chain import PlayChain
from tests.conftest import WALLET, Payer, ScriptedProvider, buy, new_account, running
from tests.http_servers import SERVE

_SIZE = 6_000_000
_HEADER = "X-Real-IP"
_MANY = "1000000000/1s"
# Between two pieces of a slow client.
_PAUSE_S = 0.01
# Small, so that they are reached.
_MAX_BYTES = 24 * PIECE_BYTES
_MAX_BYTES_PER_ADDRESS = 6 * PIECE_BYTES
# Clients that read everything at the same time: together they stay within the limits.
_READ_ALL = 4
_KINDS = ("nothing", "nothing", "slowly", "some", "all")


@attrs.frozen
class Served:
    """A gateway on a socket, and requests for large responses, without their last bytes."""

    port: int
    memory: connection_limits.UnreadMemory
    requests: Sequence[str]


@attrs.define
class Reader:
    """One client: its behaviour, its address, and the response it got."""

    kind: str
    address: str
    asked: str
    got: int = 0
    declared: int = 0

    @property
    def outcome(self) -> str:
        is_whole = self.declared and self.got == self.declared
        return f"{self.kind}: {'whole' if is_whole else 'less'}"

    async def read(self, port: int, others_are_done: asyncio.Event) -> None:
        """Send the request, and read according to its kind."""
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(connection, ("127.0.0.1", port))
            # The gateway may disconnect slow readers.
            with contextlib.suppress(ConnectionError):
                await loop.sock_sendall(connection, self._request())
                if self.kind == "nothing":
                    await others_are_done.wait()
                    return
                await self._read(connection)

    def _request(self) -> bytes:
        head = f"{self.asked} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        return f"{head}{_HEADER}: {self.address}\r\n\r\n".encode()

    async def _read(self, connection: socket.socket) -> None:
        loop, head = asyncio.get_running_loop(), b""
        while b"\r\n\r\n" not in head:
            piece = await loop.sock_recv(connection, 4096)
            if not piece:
                return
            head += piece
        head, _, body = head.partition(b"\r\n\r\n")
        self.declared = int(head.lower().partition(b"content-length: ")[2].split()[0])
        self.got = len(body)
        while piece := await loop.sock_recv(connection, 1 << 18):
            self.got += len(piece)
            if self.kind == "slowly":
                await asyncio.sleep(_PAUSE_S)
            elif self.kind == "some":
                return


def run(server: str, clients: int, *, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Run the clients; returns the outcomes and the violations."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(connection_limits, "MAX_BYTES", _MAX_BYTES),
        mock.patch.object(connection_limits, "MAX_BYTES_PER_ADDRESS", _MAX_BYTES_PER_ADDRESS),
    ):
        return asyncio.run(_run(Path(folder), server, clients, random.Random(seed)))


async def _run(
    folder: Path, server: str, clients: int, dice: random.Random
) -> tuple[Counter[str], list[str]]:
    findings: list[str] = []
    async with _served(folder, server) as served:
        readers = [_made(number, served, dice) for number in range(clients)]
        others_are_done, turns = asyncio.Event(), asyncio.Semaphore(_READ_ALL)

        async def read(reader: Reader) -> None:
            async with turns if reader.kind == "all" else contextlib.nullcontext():
                await reader.read(served.port, others_are_done)
            if served.memory.taken_bytes > _MAX_BYTES:
                findings.append(f"{served.memory.taken_bytes} bytes wait")

        async with asyncio.TaskGroup() as all_of_them:
            tasks = [all_of_them.create_task(read(reader)) for reader in readers]
            pairs = zip(tasks, readers, strict=True)
            await asyncio.wait([task for task, reader in pairs if reader.kind != "nothing"])
            others_are_done.set()
    wrong = [one for one in readers if one.got > one.declared or one.outcome == "all: less"]
    findings += [f"{reader} on {server}" for reader in wrong]
    if served.memory.taken_bytes:
        findings.append(f"{served.memory.taken_bytes} bytes wait for nobody on {server}")
    return Counter(reader.outcome for reader in readers), findings


def _made(number: int, served: Served, dice: random.Random) -> Reader:
    """Return a client; one that reads everything has its own address."""
    kind = dice.choice(_KINDS) if number else "all"
    address = f"10.1.{number >> 8}.{number & 255}" if kind == "all" else f"10.0.0.{number % 4}"
    return Reader(kind, address, dice.choice(served.requests))


@contextlib.asynccontextmanager
async def _served(folder: Path, server: str) -> AsyncIterator[Served]:
    with PlayChain() as chain:
        key = new_account()
        chain.fund(key.address, eth_wei=10**18, usdc_units=0)
        settings = Settings(
            base_url="http://gateway.test",
            wallet=WALLET,
            rpc_urls=(chain.rpc_url,),
            data_dir=folder,
            settlement_key=key.key.hex(),
            plugin_values={"admin_password": "correct horse"},
            limit_task=_MANY,
            min_free_disk_mb=0,
            client_ip_header=_HEADER,
        )
        provider = ScriptedProvider()
        provider.script = [Result(text="x" * _SIZE)]
        async with running(settings, provider) as gateway:
            requests = await _buy(gateway, Payer(chain))
            stop = asyncio.Event()
            with listen("127.0.0.1:0") as listener:
                port = listener.getsockname()[1]
                serving = asyncio.create_task(SERVE[server](gateway.app.asgi_app, listener, stop))
                yield Served(port, gateway.app.asgi_app.unread, requests)
                stop.set()
                await serving


async def _buy(gateway, payer: Payer) -> list[str]:
    """Buy a large text; returns the requests for it and its file."""
    fields = {"fileBase64": "aGVsbG8=", "fileName": "a.txt"}
    sold = await buy(gateway, payer.header(10_000), url="/api/x402/paper", **fields)
    task = await gateway.wait((await sold.get_json())["taskId"])
    file = task["result"]["outputs"][0]["url"].removeprefix("http://gateway.test")
    return [f"GET /api/task/{task['taskId']}", f"GET {file}"]
