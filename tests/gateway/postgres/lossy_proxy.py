"""A proxy before PostgreSQL that loses a message or its response, like a network."""

import asyncio
import contextlib

_COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"


class LossyProxy:
    """Forwards bytes; while `losses` is positive, a message ends the connection instead."""

    def __init__(self, socket_path, *, reaches_server, loses):
        self.losses = 0
        self.port = 0
        self._socket_path = socket_path
        self._reaches_server = reaches_server
        self._loses = loses

    def lead_to(self, address):
        """Return the URL of a database through this proxy."""
        database = address.partition("?")[0].rpartition("/")[2]
        return f"postgresql://gateway@127.0.0.1:{self.port}/{database}?sslmode=disable"

    async def serve(self, reader, writer):
        """Forward one connection in both directions until one side ends it."""
        up_reader, up_writer = await asyncio.open_unix_connection(self._socket_path)
        down = asyncio.create_task(_pass_on(up_reader, writer))
        try:
            while data := await reader.read(65536):
                if self.losses and self._loses in data:
                    self.losses -= 1
                    down.cancel()
                    if self._reaches_server:
                        up_writer.write(data)
                        await up_writer.drain()
                    return
                up_writer.write(data)
                await up_writer.drain()
        finally:
            down.cancel()
            writer.close()
            up_writer.close()


async def _pass_on(reader, writer):
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def lossy_proxy(server, *, reaches_server, loses=_COMMIT):
    """Run a proxy before a `PostgresServer`."""
    proxy = LossyProxy(server.socket_path, reaches_server=reaches_server, loses=loses)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
