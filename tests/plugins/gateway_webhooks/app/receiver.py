"""A receiver of webhooks in the test's event loop, with answers that the test chooses."""

import asyncio
import contextlib
import json
import ssl

import attrs
from standardwebhooks import Webhook


@attrs.frozen
class Delivered:
    """A received request: path, headers in lower case, and body."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict:
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def verified_by(self, secret: str) -> dict:
        """The event as the official library reads it; raises for a wrong signature."""
        return Webhook(secret).verify(self.body, self.headers)


@attrs.define
class Receiver:
    """Answers requests with `answers` in order, then with 204.

    An answer is bytes to send unchanged, None to send nothing, or a function that writes to the
    connection.
    """

    port: int = 0
    answers: list = attrs.field(factory=list)
    delivered: list[Delivered] = attrs.field(factory=list)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event)
    _open: set = attrs.field(factory=set)

    async def converse(self, reader, writer) -> None:
        self._open.add(asyncio.current_task())
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._receive(reader, writer)
        finally:
            self._open.discard(asyncio.current_task())
            writer.close()

    async def _receive(self, reader, writer) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in headers.items()}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        answer = self.answers.pop(0) if self.answers else status(204)
        self.delivered.append(Delivered(head[0].split()[1], headers, body))
        self._changed.set()
        if answer is None:
            await reader.read()
        elif callable(answer):
            await answer(writer)
        else:
            writer.write(answer)
            await writer.drain()

    async def got(self, count: int) -> list[Delivered]:
        """Wait for `count` requests; return them."""
        async with asyncio.timeout(120):
            while len(self.delivered) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.delivered


def status(code: int, *headers: str, body: bytes = b"") -> bytes:
    fields = [*headers, f"Content-Length: {len(body)}"]
    return "\r\n".join([f"HTTP/1.1 {code} Said", *fields, "", ""]).encode() + body


@contextlib.asynccontextmanager
async def receiving(tls: ssl.SSLContext | None = None):
    """Yield a receiver on a free port of this machine."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.converse, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for conversation in list(receiver._open):
            conversation.cancel()
        await asyncio.gather(*receiver._open, return_exceptions=True)
