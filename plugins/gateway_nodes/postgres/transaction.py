"""A write's transaction, which waits for the server only when a result is read.

So a write that first reads all it needs, and then changes rows, takes two round trips, however many
statements it has: COMMIT goes with the changes. One that calls `finish` before it reads a result
takes a single one. Locks are taken with the first statements and released with COMMIT.
"""

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import errors

from gateway.store.sql import Cursor
from gateway_nodes.postgres.batch import Batch
from gateway_nodes.postgres.session import Session

READ_COMMITTED = "BEGIN ISOLATION LEVEL READ COMMITTED"
REPEATABLE_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ"


class Transaction:
    """The connection that a write gets. Implements `gateway.store.sql.Connection`."""

    def __init__(self, session: Session, batch: Batch) -> None:
        self._session, self._batch = session, batch
        self.dialect = session.dialect
        self._has_locks = self._is_finished = False
        self._id: Any = None
        self._committed: Any = None
        # Whether the function has returned, and COMMIT was sent: its outcome must not be guessed.
        self.is_committing = False

    def begin(self, begin: str, locks: Sequence[int]) -> None:
        """Take the locks, which last until COMMIT or `roll_back`, and begin."""
        self._has_locks = bool(locks)
        if locks:
            # In a transaction of their own: the snapshot of the next is taken after them.
            self._batch.add("BEGIN")
            for lock in locks:
                self._batch.add(f"SELECT pg_advisory_lock({lock})")
            self._batch.add("END")
        self._batch.add(begin)
        self._id = self._batch.add("SELECT pg_current_xact_id()::text")

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """Run a statement, as `Session.execute` does, but wait only when its result is read."""
        result: Cursor = self._batch.add(sql, parameters)
        return result

    @property
    def id(self) -> str:
        """The transaction's id, by which the server tells its outcome. Waits for the server."""
        if not isinstance(self._id, str):
            (self._id,) = self._id.fetchone()
        return self._id

    def finish(self) -> None:
        """End the transaction with the next result that is read; see `gateway.store.sql.finish`."""
        self._is_finished = True
        self._committed = self._batch.add("COMMIT")
        if self._has_locks:
            self._batch.add("SELECT pg_advisory_unlock_all()")

    def commit(self) -> None:
        """Commit, unless `finish` did; raises an error if the server rolled back instead."""
        if not self._is_finished:
            # Known before COMMIT is sent.
            _ = self.id
            self.is_committing = True
            self.finish()
        self._batch.send()
        if self._committed.status != "COMMIT" or self._session.is_in_transaction:
            # As after an error that the function has caught.
            raise errors.InFailedSqlTransaction("the transaction was not committed")

    def roll_back(self) -> bool:
        """End the transaction and release the locks; closes a connection that cannot.

        Returns whether the transaction was open until then, so that nothing is committed.
        """
        self._batch.forget()
        was_open = self._session.is_in_transaction
        try:
            if was_open:
                self._session.roll_back()
            if self._has_locks:
                self._session.execute("SELECT pg_advisory_unlock_all()")
        except psycopg.Error:
            self._session.close()
        return was_open


class EagerTransaction(Transaction):
    """A transaction for functions of plugins: each statement is judged before the next."""

    def execute(
        self, sql: str, parameters: Any = (), /, *, prepare: bool | None = None
    ) -> psycopg.Cursor[Any]:
        """Run a statement at once."""
        self._batch.send()
        return self._session.execute(sql, parameters, prepare=prepare)

    @property
    def is_in_transaction(self) -> bool:
        """Whether the last statement left the transaction open."""
        return self._session.is_in_transaction
