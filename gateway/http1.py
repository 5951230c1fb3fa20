"""Makes Hypercorn speak HTTP/1.1 only, and say so when it will close a connection.

Without TLS, HTTP/2 serves no client of ours, and lets one connection open and cancel requests
without end. Hypercorn has no setting for it. A proxy in front may offer HTTP/2 by itself.
"""

import dataclasses

import h11
import hypercorn.protocol
from hypercorn.events import Closed
from hypercorn.protocol.events import Event, Response
from hypercorn.protocol.h11 import H11Protocol

_VERSIONS = (b"1.0", b"1.1")
_NOT_SUPPORTED = 505


class Http1Protocol(H11Protocol):
    """Hypercorn's HTTP/1.1 without its two ways into HTTP/2."""

    async def stream_send(self, event: Event) -> None:
        """Send a part of an answer; one before the request's end says that it is the last.

        What is left of the request is not read, so Hypercorn closes the connection then.
        """
        if isinstance(event, Response) and self.connection.their_state is h11.SEND_BODY:
            headers = [*event.headers, (b"connection", b"close")]
            event = dataclasses.replace(event, headers=headers)
        await super().stream_send(event)

    async def _check_protocol(self, event: h11.Request) -> None:
        """Ignore `Upgrade: h2c`, as a server may (RFC 9110 §7.8)."""

    async def _create_stream(self, request: h11.Request) -> None:
        if request.http_version in _VERSIONS:
            await super()._create_stream(request)
        else:
            await self._send_error_response(_NOT_SUPPORTED)
            await self.send(Closed())


def speak_http1_only() -> None:
    """Let every later connection of this process use `Http1Protocol`."""
    hypercorn.protocol.H11Protocol = Http1Protocol  # type: ignore[attr-defined]
