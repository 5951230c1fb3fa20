"""Changes by a plugin's function, found by PostgreSQL's own counters and catalog.

Its transaction is rolled back if it changed rows or the schema of tables that are not its own. This
needs no role, which managed servers do not let the gateway create.
"""

from collections.abc import Callable
from typing import Any

import attrs
import psycopg
from psycopg import errors

from gateway.store.plugin_functions import PluginOwner
from gateway_nodes.postgres.session import Session

_ROWS = """SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_xact_user_tables
    WHERE schemaname = current_schema()"""
# Everything that a statement about a schema may change.
_SCHEMA = """
    SELECT c.relname, 'table', concat_ws(' ', c.oid, c.relfilenode, c.relnatts, c.relchecks,
        c.relhasrules, c.relkind)
    FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace
    UNION ALL
    SELECT c.relname, 'column ' || a.attname,
        concat_ws(' ', a.atttypid, a.attnotnull, a.atthasdef, a.attisdropped)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND a.attnum > 0
    UNION ALL
    SELECT c.relname, 'index ' || i.indexrelid, i.indisvalid::text
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE c.relnamespace = current_schema()::regnamespace
    UNION ALL
    SELECT c.relname, 'constraint ' || k.oid, pg_get_constraintdef(k.oid)
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE c.relnamespace = current_schema()::regnamespace
    UNION ALL
    SELECT c.relname, 'trigger ' || t.oid, t.tgenabled::text
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
    UNION ALL
    SELECT '', 'function ' || p.oid, md5(p.prosrc)
    FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace
"""
# A row that refers to nothing, which PostgreSQL checks at COMMIT: until it is deleted, each fails.
_FORBID_COMMIT = """
    CREATE TEMPORARY TABLE IF NOT EXISTS gateway_commits (
        id INTEGER PRIMARY KEY,
        parent INTEGER REFERENCES pg_temp.gateway_commits DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO pg_temp.gateway_commits VALUES (1, 2)
"""
_ALLOW_COMMIT = "DELETE FROM pg_temp.gateway_commits"
_TRANSACTION = "SELECT pg_current_xact_id_if_assigned()::text"


class NotItsOwn(Exception):
    """A plugin changed something that is not its own."""


@attrs.frozen
class State:
    """Rows and schema of all other tables, at one moment of a transaction."""

    transaction: str | None
    rows: frozenset[Any]
    schema: frozenset[Any]

    @classmethod
    def read(cls, raw: "psycopg.Connection[Any] | Session", owner: PluginOwner) -> "State":
        """Read the state of all tables that are not the plugin's."""

        def others(sql: str) -> frozenset[Any]:
            found = raw.execute(sql)
            return frozenset(tuple(row) for row in found.fetchall() if not owner.owns(row[0]))

        found = raw.execute(_TRANSACTION).fetchone()
        transaction = found[0] if found is not None else None
        return cls(transaction, others(_ROWS), others(_SCHEMA))

    def compare(self, later: "State", owner: PluginOwner) -> None:
        """Raise `NotItsOwn` if the plugin changed anything but its own tables."""
        if later.transaction != self.transaction:
            raise NotItsOwn(f"The plugin {owner.plugin} ended the gateway's transaction.")
        changed = sorted({str(row[0]) for row in later.rows ^ self.rows})
        changed += sorted({str(row[0]) or "a function" for row in later.schema ^ self.schema})
        if changed:
            raise NotItsOwn(
                f"The plugin {owner.plugin} changed {changed[0]}, which is not its own."
            )


class PluginSession:
    """The `db` of a plugin's function: `execute`, and nothing more."""

    def __init__(self, db: Session, owner: PluginOwner, *, writes: bool) -> None:
        self._db, self._owner, self._writes = db, owner, writes
        self._before: State | None = None

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        """Run a statement, as `Session` does."""
        if self._before is None:
            self._begin()
        self._check_transaction()
        try:
            return self._db.execute(sql, parameters, prepare=True)
        except errors.SyntaxError as error:
            if ";" in sql.strip().rstrip(";"):
                raise NotItsOwn(
                    f"The plugin {self._owner.plugin} executed several statements at once, or one "
                    f"with a mistake: {error}"
                ) from error
            raise
        finally:
            self._check_transaction()

    def _begin(self) -> None:
        if self._writes:
            self._db.execute(_FORBID_COMMIT)
        self._before = State.read(self._db, self._owner)

    def _check_transaction(self) -> None:
        """Raise `NotItsOwn` after the plugin's COMMIT, which failed, or ROLLBACK."""
        if not self._db.is_in_transaction:
            raise NotItsOwn(f"The plugin {self._owner.plugin} ended the gateway's transaction.")

    def check(self) -> None:
        """Raise `NotItsOwn` if a statement changed anything but the plugin's own tables."""
        if self._before is None:
            return
        self._check_transaction()
        self._before.compare(State.read(self._db, self._owner), self._owner)
        if self._writes:
            self._db.execute(_ALLOW_COMMIT)


def run_fenced(
    db: Session, owner: PluginOwner, work: Callable[[Any, Any], Any], *, writes: bool
) -> Any:
    """Run a plugin's work in this transaction; raises its errors, and `NotItsOwn`."""
    handle = PluginSession(db, owner, writes=writes)
    value = work(db, handle)
    handle.check()
    return value
