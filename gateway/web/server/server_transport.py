"""The transport that Hypercorn gets from a guarded connection."""

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.web.server.connection_guard import Guard


class ServerTransport:
    """A connection whose server writes and closes through its guard."""

    def __init__(self, wire: asyncio.Transport, guard: "Guard") -> None:
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
