"""Wakes other nodes with NOTIFY, and listens to them on one connection.

A notification is sent in a transaction of its own, after the commit that it reports: in the same
transaction it would hold a server-wide lock until the commit is flushed. It is only a hint. The
receiver reads the database, and the next poll makes up for a lost notification.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any

import attrs
import psycopg
import structlog

from gateway.contracts.nodes import WakeHandlers
from gateway.errors import StoreUnavailable
from gateway_nodes.postgres.session import KEEPALIVE

_CHANNEL = "gateway"
# PostgreSQL limits a payload to less than 8,000 bytes.
_MAX_BYTES = 7_900
# Announces a queued task; all other words are ids of tasks that ended.
_QUEUED = "+"
_log = structlog.get_logger()

Listening = psycopg.AsyncConnection[Any]


@attrs.frozen(kw_only=True)
class WakeTiming:
    """Durations in seconds."""

    # Between two notifications of this node; events in between are batched.
    post_s: float = 0.01
    # Quiet time before the connection is checked, and the timeout of that check.
    quiet_s: float = 15.0
    answer_s: float = 5.0
    # Before a lost connection is reopened.
    reconnect_s: float = 1.0


class PostgresWakes:
    """Implements `contracts.nodes.Wakes`."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Listening]],
        send: Callable[[str, str], Awaitable[object]],
    ) -> None:
        """`connect` opens a connection to listen on; `send` takes a channel and a payload."""
        self._connect = connect
        self._send = send
        self.timing = WakeTiming()
        # Prefix of this node's notifications, by which it ignores its own.
        self._tag = secrets.token_hex(4)
        self._words: set[str] = set()
        self._posting: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self._handlers: WakeHandlers | None = None
        self._is_live = self._was_lost = False

    @property
    def is_live(self) -> bool:
        """Whether this node receives notifications now."""
        return self._is_live

    def start(self, handlers: WakeHandlers) -> None:
        """Receive notifications until `close`."""
        self._handlers = handlers
        self._listener = asyncio.create_task(self._listen_forever(), name="wake-listen")

    async def renew(self) -> None:
        """Listen on a new connection, because the old one may be dead without a sign."""
        if self._listener is not None and self._handlers is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])
            self.start(self._handlers)

    async def close(self) -> None:
        """Send pending notifications, and stop listening."""
        if self._posting is not None:
            await asyncio.wait([self._posting])
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])
        self._is_live = False

    # -- sending

    def post_queued(self) -> None:
        """Announce that a task is queued."""
        self._post(_QUEUED)

    def post_ended(self, task_id: str) -> None:
        """Announce that a task has ended."""
        self._post(task_id)

    def _post(self, word: str) -> None:
        self._words.add(word)
        if self._posting is None or self._posting.done():
            self._posting = asyncio.create_task(self._send_words(), name="wake-post")

    async def _send_words(self) -> None:
        while self._words:
            words, self._words = self._words, set()
            try:
                for payload in _write_payloads(self._tag, words):
                    await self._send(_CHANNEL, payload)
            except (StoreUnavailable, psycopg.Error) as error:
                _log.warning("wake.not_sent", error=_reason(error))
            await asyncio.sleep(self.timing.post_s)

    # -- receiving

    async def _listen_forever(self) -> None:
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError) as error:
                self._note_loss(error)
            except Exception:  # noqa: BLE001 - the background task reconnects
                self._is_live = False
                _log.exception("wake.failed")
            await asyncio.sleep(self.timing.reconnect_s)

    async def _listen(self) -> None:
        """Receive notifications; raises once the connection is lost."""
        raw = await self._connect()
        try:
            await raw.execute(f"LISTEN {_CHANNEL}".encode())
            self._note_begin()
            while True:
                async for notice in raw.notifies(timeout=self.timing.quiet_s):
                    self._receive(notice.payload)
                async with asyncio.timeout(self.timing.answer_s):
                    await raw.execute(b"SELECT 1")
        finally:
            self._is_live = False
            with contextlib.suppress(psycopg.Error):
                await raw.close()

    def _receive(self, payload: str) -> None:
        tag, _, words = payload.partition(" ")
        if self._handlers is None or tag == self._tag:
            return
        for word in words.split():
            if word == _QUEUED:
                self._handlers.on_queued()
            else:
                self._handlers.on_ended(word)

    def _note_begin(self) -> None:
        """Have everything polled once: earlier notifications were missed."""
        self._is_live = True
        if self._was_lost:
            _log.info("wake.restored")
        self._was_lost = False
        if self._handlers is not None:
            self._handlers.on_gap()

    def _note_loss(self, error: Exception) -> None:
        if not self._was_lost:
            _log.warning("wake.lost", error=_reason(error))
        self._was_lost = True


async def listen_to(address: str, name: str) -> Listening:
    """Open a connection to listen on; raises `psycopg.OperationalError`."""
    return await psycopg.AsyncConnection.connect(
        address, autocommit=True, application_name=name, client_encoding="utf8", **KEEPALIVE
    )


def _write_payloads(tag: str, words: Collection[str]) -> Iterator[str]:
    payload = tag
    for word in words:
        if len(payload) + 1 + len(word) > _MAX_BYTES:
            yield payload
            payload = tag
        payload += f" {word}"
    yield payload


def _reason(error: Exception) -> str:
    """Return the reason without the address, which may contain the password."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
