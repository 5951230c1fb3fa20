"""Calls an app like an ASGI server, with anything that a server lets through."""

import asyncio
from collections.abc import Sequence
from urllib.parse import unquote

import attrs

# The end of a request's body: complete, missing, or cut off.
WHOLE, SILENT, HUNG_UP = "whole", "silent", "hung up"


@attrs.frozen(kw_only=True)
class Asked:
    """One request: its head, the pieces of its body, and its end."""

    method: str = "GET"
    path: bytes = b"/api/health"
    query: bytes = b""
    headers: Sequence[tuple[bytes, bytes]] = ((b"host", b"gateway.test"),)
    pieces: Sequence[bytes] = ()
    end: str = WHOLE
    root_path: str = ""
    client: str = "203.0.113.1"

    def scope(self) -> dict:
        """Return the scope as Hypercorn makes it."""
        return {
            "type": "http",
            "http_version": "1.1",
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "method": self.method,
            "scheme": "http",
            "path": unquote(self.path.decode("ascii")),
            "raw_path": self.path,
            "query_string": self.query,
            "root_path": self.root_path,
            "headers": list(self.headers),
            "client": (self.client, 50_000),
            "server": ("127.0.0.1", 8080),
            "state": {},
            "extensions": {},
        }


@attrs.frozen
class Answered:
    """The server's response."""

    status: int
    headers: dict[str, list[str]]
    body: bytes


class Client:
    """The client's side of a request: sends it, and keeps the app's messages."""

    def __init__(self, asked: Asked) -> None:
        self._messages: asyncio.Queue[dict] = asyncio.Queue()
        self.sent: list[dict] = []
        # Set once the app waits for more than the client has sent.
        self.starved = asyncio.Event()
        self.reads = True
        # Servers pass on a body that came with its head as one message.
        is_one = asked.end == WHOLE and len(asked.pieces) == 1
        for piece in asked.pieces:
            self._send_body(piece, more=not is_one)
        if asked.end == WHOLE and not is_one:
            self._send_body(b"", more=False)
        if asked.end == HUNG_UP:
            self.hang_up()

    def _send_body(self, piece: bytes, *, more: bool) -> None:
        self._messages.put_nowait({"type": "http.request", "body": piece, "more_body": more})

    def hang_up(self) -> None:
        self._messages.put_nowait({"type": "http.disconnect"})

    async def receive(self) -> dict:
        if self._messages.empty():
            self.starved.set()
        return await self._messages.get()

    async def send(self, message: dict) -> None:
        self.sent.append(message)
        if not self.reads:
            await asyncio.get_running_loop().create_future()

    def answer(self) -> Answered | None:
        """Return the response; None if there was none, as after a disconnect."""
        if not self.sent:
            return None
        headers: dict[str, list[str]] = {}
        for name, value in self.sent[0]["headers"]:
            headers.setdefault(name.decode(), []).append(value.decode())
        body = b"".join(one["body"] for one in self.sent[1:])
        return Answered(self.sent[0]["status"], headers, body)


async def ask_while_checking(app, provider, asked: Asked) -> Answered | None:
    """Ask once more while eight requests wait for the provider's check, then hang these up."""
    came = asyncio.Queue()

    async def validate(request, endpoint):
        came.put_nowait(request)
        await asyncio.get_running_loop().create_future()

    provider.validate = validate
    clients = [Client(asked) for _ in range(8)]
    asking = []
    for client in clients:
        asking.append(asyncio.create_task(app(asked.scope(), client.receive, client.send)))
        await came.get()
    async with asyncio.timeout(20):
        answered = await ask(app, asked)
    for client in clients:
        client.hang_up()
    await asyncio.gather(*asking)
    return answered


async def ask(app, asked: Asked) -> Answered | None:
    """Return the app's response, or None."""
    client = Client(asked)
    # Servers run each request in its own task.
    await asyncio.create_task(app(asked.scope(), client.receive, client.send))
    return client.answer()
