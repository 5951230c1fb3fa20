"""How a guarded connection of uvicorn writes its answers."""

import asyncio
import weakref
from typing import Any, Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle


class Closing(Protocol):
    """How a guarded connection closes: `protocol.GuardedProtocol`."""

    @property
    def is_closing(self) -> bool:
        """Whether the connection accepts no further request."""
        ...

    def close(self) -> None:
        """Close after the client has read its answer."""
        ...


def write_whole(
    cycle_of: "weakref.ref[RequestResponseCycle]", status: int, lines: bytes, body: bytes
) -> bool:
    """Write an answer in one piece; return False if uvicorn must handle it.

    uvicorn would check each header again, which costs more than all the rest. A closing connection
    drops the answer.
    """
    cycle = cycle_of()
    if cycle is None:
        return False
    is_late = cycle.disconnected or cycle.response_started
    has_body = cycle.scope["method"] != "HEAD"
    if is_late or cycle.flow.write_paused or not (cycle.keep_alive and has_body):
        return False
    cycle.response_started = True
    cycle.waiting_for_100_continue = False
    own = b"".join([b"%b: %b\r\n" % field for field in cycle.default_headers])
    cycle.transport.write(b"".join((STATUS_LINE[status], own, lines, b"\r\n", body)))
    cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True


class LingeringTransport:
    """The transport for uvicorn, which closes by `GuardedProtocol.close`."""

    def __init__(self, transport: asyncio.Transport, protocol: Closing) -> None:
        self._transport = transport
        self._protocol = protocol

    def write(self, data: bytes) -> None:
        """Write bytes, or drop them if the connection is closing.

        An app may still answer a client that hung up, or a request that was refused in its body.
        """
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Close after the client has read its answer."""
        self._protocol.close()

    def is_closing(self) -> bool:
        """Whether the connection accepts no further request."""
        return self._protocol.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
