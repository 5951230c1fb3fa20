"""A proxy before PostgreSQL that loses a message or its response, like a network."""

import asyncio
import contextlib
import re

# A text with one or several statements.
_COMMIT = rb"\bCOMMIT[\n;\x00]"


class LossyProxy:
    """Forwards bytes; while `losses` is positive, a message ends the connection instead."""

    def __init__(self, socket_path, *, reaches_server, loses):
        self.losses = 0
        # The client's port of the only connection that loses messages; None for all.
        self.only_port = None
        # For how long the database is away after a loss, in seconds.
        self.outage_s = 0.0
        self.port = 0
        self.reaches_server = reaches_server
        self._socket_path = socket_path
        self._loses = loses
        self._back_at = 0.0
        self._open = set()

    def lead_to(self, address):
        """Return the URL of a database through this proxy."""
        database = address.partition("?")[0].rpartition("/")[2]
        return f"postgresql://gateway@127.0.0.1:{self.port}/{database}?sslmode=disable"

    async def serve(self, reader, writer):
        """Forward one connection in both directions until one side ends it."""
        if asyncio.get_running_loop().time() < self._back_at:
            writer.close()
            return
        try:
            up_reader, up_writer = await asyncio.open_unix_connection(self._socket_path)
        except OSError:
            # The server is down, and refuses connections itself.
            writer.close()
            return
        down = asyncio.create_task(_pass_on(up_reader, writer))
        self._open.add(writer)
        try:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(65536):
                    port = writer.get_extra_info("peername")[1]
                    if self.only_port in (None, port) and self._is_lost(data):
                        down.cancel()
                        if self.reaches_server:
                            up_writer.write(data)
                            await up_writer.drain()
                        self._go_away()
                        return
                    up_writer.write(data)
                    await up_writer.drain()
        finally:
            self._open.discard(writer)
            down.cancel()
            writer.close()
            up_writer.close()

    def _is_lost(self, data):
        if not self.losses or not re.search(self._loses, data):
            return False
        self.losses -= 1
        return True

    def _go_away(self):
        """Cut all connections, and refuse new ones for a while."""
        if self.outage_s:
            self._back_at = asyncio.get_running_loop().time() + self.outage_s
            for writer in self._open:
                writer.close()


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
