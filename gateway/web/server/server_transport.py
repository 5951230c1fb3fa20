"""The transport that Hypercorn gets from a guarded connection."""

import asyncio
from typing import Any, Protocol


class Guarding(Protocol):
    """What a guarded connection does for its server: `connection_guard.Guard`."""

    @property
    def is_closing(self) -> bool:
        """Whether the server can write no more."""
        ...

    def write(self, data: bytes) -> None:
        """Write bytes to the client."""
        ...

    def close(self) -> None:
        """Close after the client has read its answer."""
        ...

    def hold_server(self, *, is_full: bool) -> None:
        """Pass on no input while the server is full."""
        ...


class ServerTransport:
    """A connection whose server writes and closes through its guard."""

    def __init__(self, wire: asyncio.Transport, guard: Guarding) -> None:
        self._wire = wire
        self._guard = guard
        self.write = guard.write
        self.close = guard.close

    def write_eof(self) -> None:
        """Do nothing: `close` follows and decides."""

    def is_closing(self) -> bool:
        """Whether the server can write no more."""
        return self._guard.is_closing

    def pause_reading(self) -> None:
        """Pass on no further input."""
        self._guard.hold_server(is_full=True)

    def resume_reading(self) -> None:
        """Pass on input again."""
        self._guard.hold_server(is_full=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)
