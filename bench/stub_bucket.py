"""A bucket that keeps nothing: it takes every object, so that nodes have the bucket they need."""

import asyncio
import contextlib
import sys

_TAKEN = b'HTTP/1.1 200 OK\r\nETag: "0"\r\nContent-Length: 0\r\n\r\n'


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read one request after the other, and answer each with success."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            writer.write(_TAKEN)
    writer.close()


async def _serve(port: int) -> None:
    async with await asyncio.start_server(_answer, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
