"""The PostgreSQL store: the same transactions as on SQLite, from any number of nodes."""

import asyncio
import os
import socket
from collections.abc import Callable, Collection
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import psycopg

from gateway.contracts import SignedTransaction, UnsignedTransaction
from gateway.contracts.store import CheckRow
from gateway.errors import SettingsError
from gateway.settings import Settings
from gateway.store import payments
from gateway.store.plugin_functions import PluginOwner
from gateway.store.signing_groups import begin_settling_each
from gateway.store.sql import Connection, PluginWork
from gateway.store.sql_store import SqlStore, SumReader
from gateway_nodes.left_behind import refuse_other_database
from gateway_nodes.nodes import SqlNodes
from gateway_nodes.postgres.failover import read_server, set_cutoff_after_failover
from gateway_nodes.postgres.migrations import migrate, version_of
from gateway_nodes.postgres.plugin_pool import PluginPool
from gateway_nodes.postgres.pool import Pool
from gateway_nodes.postgres.session import Session, connect, refuse_pooling
from gateway_nodes.postgres.signing import SigningQueues
from gateway_nodes.postgres.transaction import EagerTransaction
from gateway_nodes.postgres.wake import PostgresWakes, listen_to

Value = TypeVar("Value")

# Statement timeout of an operator's report, which may cover a long time.
_SUM_S = 120
_FAILED_OVER = (
    "Another server stands in for the database's, and may lack the newest payments. This process "
    "sells nothing more and ends; its next start refuses transfers from before that."
)


class PostgresStore(SqlStore):
    """The store in a PostgreSQL database."""

    def __init__(
        self,
        address: str,
        *,
        node: str = "gateway",
        roles: Collection[str] = ("web", "worker", "signer"),
        connections: int = 8,
    ) -> None:
        self._address = address
        self._node = node
        self._connections = connections
        super().__init__(node)
        self.nodes = SqlNodes(self._short_read, self._write, node, self.fitness, roles)
        self._signing = SigningQueues(partial(self._write, begin_settling_each))
        self.wakes: PostgresWakes = PostgresWakes(
            partial(listen_to, address, f"{node} listens"), self._notify
        )

    async def check_rows(self) -> list[CheckRow]:
        # Only this command needs it.
        from gateway_nodes.postgres import checks  # noqa: PLC0415

        found = await asyncio.to_thread(checks.run_checks, self._address)
        return [(one.name, one.result) for one in found]

    async def read_early(self, function: Callable[[Connection], Value]) -> Value | None:
        try:
            return await asyncio.to_thread(self._read_early, function)
        except psycopg.Error as error:
            raise _silent(error) from None

    def _read_early(self, function: Callable[[Connection], Value]) -> Value | None:
        with connect(self._address, self._node) as raw:
            return function(Session(raw)) if version_of(raw) else None

    async def check_settings(self, settings: Settings) -> None:
        await refuse_other_database(settings, self)

    async def __aenter__(self) -> Self:
        self._sums.begin()
        try:
            server = await asyncio.to_thread(self._prepare)
        except psycopg.OperationalError as error:
            raise _silent(error) from None
        loop = asyncio.get_running_loop()
        open_pool = partial(
            Pool, self._address, server=server, on_other_server=lambda: self._end_in(loop)
        )
        self._pool = open_pool(self._node, self._connections)
        self._plugins = PluginPool(
            # Each statement of a plugin is judged before the next one.
            lambda threads: open_pool(
                f"{self._node} plugins", 1, threads=threads, transaction=EagerTransaction
            ),
            partial(self._pool.read, _end_session),
        )
        return self

    def _end_in(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon_threadsafe(self.fitness.mark_unfit, _FAILED_OVER)

    def _prepare(self) -> str:
        """Refuse an unsuitable database, and migrate its schema; returns the server's identity."""
        with connect(self._address, self._node) as raw:
            refuse_pooling(raw, self._address)
            migrate(raw)
            set_cutoff_after_failover(raw)
            return read_server(raw)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.wakes.close()
        await self._sums.close()
        await self._plugins.close()
        await self._pool.close()

    async def begin_settling(
        self,
        payment_id: int,
        transaction: SignedTransaction | UnsignedTransaction | None,
        now: float,
    ) -> SignedTransaction | None:
        if isinstance(transaction, UnsignedTransaction):
            return await self._signing.sign(payment_id, transaction, now)
        return await self._write(payments.begin_settling, payment_id, transaction, now)

    async def _write(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        return await self._pool.write(function, *arguments, **named)

    async def _short_read(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        return await self._pool.read(function, *arguments, **named)

    async def _long_read(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        return await self._pool.read(function, *arguments, **named)

    async def _run_for_plugin(self, owner: PluginOwner, work: PluginWork, *, writes: bool) -> Any:
        return await self._plugins.run(owner, work, writes=writes)

    async def _notify(self, channel: str, payload: str) -> None:
        # In a transaction of its own it writes no row, so the commit waits for no flush.
        await self._pool.read(_notify, channel, payload)

    async def _open_sums(self) -> SumReader:
        return _Sums(Pool(self._address, f"{self._node} sums", 1, statement_s=_SUM_S))

    async def renew_connections(self) -> None:
        self._pool.renew()
        self._plugins.renew()
        await self.wakes.renew()

    @property
    def is_full(self) -> bool:
        return self._pool.is_full

    async def check_writable(self) -> None:
        await self.ping()
        await self._pool.try_room()

    async def give_back_space(self) -> None:
        """Do nothing: PostgreSQL's autovacuum does it."""


def open_postgres(settings: Settings, name: str | None) -> PostgresStore:
    """Return the store, not yet opened."""
    return PostgresStore(
        settings.database_url,
        node=name or node_name(settings),
        roles=settings.roles,
        connections=settings.database_connections,
    )


def node_name(settings: Settings) -> str:
    """Return this machine's node name."""
    return settings.node or os.environ.get("FLY_MACHINE_ID") or socket.gethostname()


def _notify(db: Connection, channel: str, payload: str) -> None:
    db.execute("SELECT pg_notify(?, ?)", (channel, payload))


def _end_session(db: Connection, process_id: int) -> None:
    db.execute("SELECT pg_terminate_backend(?)", (process_id,))


class _Sums:
    """Runs an operator's reports, each on one snapshot, on a separate connection."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def run(self, function: Callable[..., Any]) -> Any:
        """Run a function on one snapshot."""
        return await self._pool.read_one_state(function)

    async def close(self) -> None:
        """Close the connection."""
        await self._pool.close()


def _silent(error: psycopg.Error) -> SettingsError:
    return SettingsError(
        f"The database of GATEWAY_DATABASE_URL does not answer ({_first_line(error)}). "
        "Check the address, and that the server runs."
    )


def _first_line(error: psycopg.Error) -> str:
    """Return the reason without the address, which may contain the password."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
