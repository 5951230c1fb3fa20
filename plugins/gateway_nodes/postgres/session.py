"""Adapts a psycopg connection to `gateway.store.sql.Connection`."""

import contextlib
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus

from gateway.errors import SettingsError
from gateway.store.sql import Dialect

POSTGRESQL = Dialect(
    name="postgresql",
    ordered_join="JOIN",
    takes_index_hints=False,
    skip_locked="FOR UPDATE SKIP LOCKED",
    share_lock="FOR SHARE",
    by_bytes='COLLATE "C"',
    json_function="text_in_json",
    clock="CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)",
    is_shared=True,
    size_query="SELECT pg_database_size(current_database())",
    new_payment_query="SELECT nextval(pg_get_serial_sequence('payments', 'id'))",
)
# A string literal, a placeholder or a percent sign. Two colons are a cast.
MARK = re.compile(r"'(?:[^']|'')*'|(?<!:):([a-z_]\w*)|\?|%")

# Detects a server that vanished within half a minute.
KEEPALIVE: Mapping[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}


class Row(tuple[Any, ...]):
    """A row, indexed by position, name or slice."""

    __slots__ = ()
    names: Mapping[str, int]

    def __getitem__(self, key: Any) -> Any:
        """Return a value, or the tuple of a slice."""
        return tuple.__getitem__(self, self.names[key] if isinstance(key, str) else key)

    def keys(self) -> list[str]:
        """Return the column names."""
        return list(self.names)


@functools.lru_cache(maxsize=512)
def _row_kind(columns: tuple[bytes | None, ...]) -> type[Row]:
    """Return the row class for these columns; a duplicate name finds the first."""
    names = [(column or b"").decode() for column in columns]
    numbers = {name: names.index(name) for name in names}
    return type("Row", (Row,), {"__slots__": (), "names": numbers})


def _make_rows(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], Any]:
    # Not by `description`: it makes an object for each column, each time.
    result = cursor.pgresult
    if result is None or not result.nfields:
        return tuple
    return _row_kind(tuple([result.fname(number) for number in range(result.nfields)]))


class _NumberLoader(Loader):
    """Loads NUMERIC, PostgreSQL's type for sums of integers, as int or float."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


@functools.lru_cache(maxsize=1024)
def _translate(sql: str) -> str:
    """Translate placeholders to psycopg's: `%s` for `?`, `%(name)s` for `:name`."""

    def replace(found: re.Match[str]) -> str:
        text = found.group()
        if text == "?":
            return "%s"
        if found.group(1):
            return f"%({found.group(1)})s"
        return text.replace("%", "%%")

    return MARK.sub(replace, sql)


def without_nul(parameters: Any) -> Any:
    """Replace NUL characters, such as in a client's path, which PostgreSQL cannot store.

    The replacement character is in none of our keys, and is readable in a vendor's message.
    """
    if isinstance(parameters, Mapping):
        return {name: _replace_nul(value) for name, value in parameters.items()}
    return [_replace_nul(value) for value in parameters]


def _replace_nul(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


class Session:
    """The connection that store functions get. Implements `gateway.store.sql.Connection`."""

    dialect = POSTGRESQL

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self._raw = raw

    def execute(
        self, sql: str, parameters: Any = (), /, *, prepare: bool | None = None
    ) -> psycopg.Cursor[Any]:
        """Run a statement; parameters are a sequence for `?` and a mapping for `:name`.

        With `prepare`, the server refuses several statements in one text.
        """
        if not parameters:
            # Without parameters psycopg does not parse placeholders.
            return self._raw.execute(sql.encode(), prepare=prepare)
        return self._raw.execute(_translate(sql).encode(), without_nul(parameters), prepare=prepare)

    def roll_back(self) -> None:
        """Roll back. psycopg's `execute` would discard every prepared statement as well."""
        self._raw.pgconn.exec_(b"ROLLBACK")
        if self.is_in_transaction:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(psycopg.Error):
            self._raw.close()

    @property
    def is_closed(self) -> bool:
        """Whether the connection was closed or lost."""
        return self._raw.closed

    @property
    def is_in_transaction(self) -> bool:
        """Whether the last statement left the transaction open."""
        return self._raw.info.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        )


def connect(address: str, name: str, *, statement_s: int = 30) -> psycopg.Connection[Any]:
    """Open a connection with durable commits.

    `name` is its application name, `statement_s` the timeout of a statement in seconds. Raises
    `psycopg.OperationalError` if the server does not respond or refuses.
    """
    raw = psycopg.connect(
        address,
        autocommit=True,
        application_name=name,
        client_encoding="utf8",
        row_factory=_make_rows,
        **KEEPALIVE,
    )
    raw.adapters.register_loader("numeric", _NumberLoader)
    # Set by statements, because poolers refuse startup options.
    raw.execute(
        f"""SET synchronous_commit = on;
            SET statement_timeout = {statement_s * 1000};
            SET lock_timeout = 10000;
            SET idle_in_transaction_session_timeout = 60000;
            SET default_transaction_isolation = 'read committed'""".encode()
    )
    return raw


def refuse_pooling(raw: psycopg.Connection[Any], address: str) -> None:
    """Raise `SettingsError` behind a pooler in transaction mode.

    The gateway's locks, LISTEN and settings need a session of their own. Such a pooler reveals
    itself if two clients reach the same session (it reuses the last one), or one client reaches two
    (it rotates them).
    """
    with connect(address, "gateway check") as other:
        asked = [raw, other, raw, raw, other, other, raw]
        pids = [(each, each.execute("SELECT pg_backend_pid()").fetchone()) for each in asked]
    of_raw, of_other = ({pid for each, pid in pids if each is one} for one in (raw, other))
    if len(of_raw) > 1 or len(of_other) > 1 or of_raw == of_other:
        raise SettingsError(
            "GATEWAY_DATABASE_URL leads to a pooler in transaction mode. The gateway needs its "
            "sessions for itself: use the direct address, or a pooler in session mode."
        )
