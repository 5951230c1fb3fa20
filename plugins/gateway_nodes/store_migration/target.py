"""The target of a migration: opens, checks and prepares the PostgreSQL database."""

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
import psycopg.conninfo

from gateway.errors import SettingsError
from gateway_nodes.postgres.migrations import migrate, version_of
from gateway_nodes.postgres.session import Session, connect, refuse_pooling
from gateway_nodes.store_migration.notes import shown

# Rows of `meta` that the schema itself writes.
_OF_THE_SCHEMA = ("readable_by", "schema_base")


class Target:
    """An open connection whose transactions the caller controls."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self._session = Session(raw)
        # Psycopg's connection, for COPY.
        self.raw = raw

    def execute(self, sql: str, parameters: Any = (), /) -> psycopg.Cursor[Any]:
        """Run a statement like `gateway.store.sql.Connection`."""
        return self._session.execute(sql, parameters)

    def prepare(self) -> None:
        """Migrate the schema to the newest version."""
        migrate(self.raw)

    def describe(self) -> str:
        """Describe the server's version and the database's contents."""
        server = self.execute("SHOW server_version").fetchone()
        version = version_of(self.raw)
        if version == 0:
            found = "it has no tables yet, the migration makes them"
        elif self._is_empty():
            found = f"its tables are of version {version}, and empty"
        else:
            found = "it is not empty, so nothing can be migrated there"
        return f"PostgreSQL {server[0] if server else '?'}; {found}"

    def _is_empty(self) -> bool:
        """Whether nothing was sold or set up; `check_target` later checks every table."""
        sql = """SELECT 1 FROM meta WHERE key NOT IN (?, ?)
            UNION ALL SELECT 1 FROM payments LIMIT 1"""
        return self.execute(sql, _OF_THE_SCHEMA).fetchone() is None


@contextlib.contextmanager
def open_target(address: str) -> Iterator[Target]:
    """Open a database.

    Raises `SettingsError` if it does not respond, also later within the block, or is unsuitable.
    """
    _check_address(address)
    try:
        with contextlib.closing(connect(address, "gateway migrate-store")) as raw:
            refuse_pooling(raw, address)
            # Copying a large table takes longer than the usual timeouts.
            raw.execute("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0")
            yield Target(raw)
    except psycopg.Error as error:
        # The first line is the reason, without the address and its password.
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise SettingsError(
            f"{shown(address)} does not do what the migration needs ({reason}). Fix that and "
            "run `gateway migrate-store` again."
        ) from None


def _check_address(address: str) -> None:
    """Raise `SettingsError` for a malformed address, without repeating any of it."""
    is_ours = address.startswith(("postgresql://", "postgres://"))
    try:
        psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        is_ours = False
    if not is_ours:
        raise SettingsError(
            "That is no address of a PostgreSQL. Write postgresql://user:password@host/name, and "
            "signs such as @ or % in the password as %40 or %25."
        )
