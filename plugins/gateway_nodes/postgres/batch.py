"""Statements of a transaction that are sent together, in one round trip.

A text of several statements goes by the simple protocol, which takes no parameters. So each
statement is prepared once per connection, and executed with its values as literals. Python gives up
its lock once per round trip; psycopg's pipeline mode does so once per statement, which takes twice
the processor time.
"""

import functools
import itertools
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql as composing
from psycopg.pq import Escaping

from gateway_nodes.postgres.session import MARK, Session, without_nul

# Prepared statements of a connection. Some texts depend on the length of a list. Each takes up to
# 200 kB of the server's memory.
_MOST_PREPARED = 60
# Longer values are sent by the extended protocol, which does not parse them as text.
_LARGE = 65_536
_TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double precision",
    bytes: "bytea",
}
_MAX_BIGINT = 2**63


class Result:
    """The result of a statement. Reading it sends all statements that wait."""

    __slots__ = ("_batch", "_rowcount", "_rows", "status")

    def __init__(self, batch: "Batch") -> None:
        self._batch = batch
        self._rowcount = -1
        self._rows: Iterator[Any] | None = None
        # The command that the server has completed.
        self.status: str | None = None

    def set(self, rowcount: int, rows: Sequence[Any], status: str | None) -> None:
        """Set the server's answer."""
        self._rowcount, self._rows, self.status = rowcount, iter(rows), status

    @property
    def rowcount(self) -> int:
        """How many rows an INSERT, UPDATE or DELETE changed."""
        self._known()
        return self._rowcount

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return next(self._known(), None)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return list(self._known())

    def __iter__(self) -> Iterator[Any]:
        """Return the rows that are left, one by one."""
        return self._known()

    def _known(self) -> Iterator[Any]:
        if self._rows is None:
            self._batch.send()
        if self._rows is None:
            raise psycopg.InterfaceError("the statement was not answered")
        return self._rows


class Batch:
    """Collects a connection's statements until a result is read."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self._raw = raw
        self._escaping = Escaping(raw.pgconn)
        # Names of its own: a pooler may lend a session that has statements of an earlier client.
        self._prefix = b"gateway_" + secrets.token_hex(4).encode()
        self._numbers = itertools.count()
        # By text and types of the values; the least recently used first.
        self._prepared: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        # Those that the server has not confirmed yet, and how many it never did.
        self._unconfirmed: list[tuple[str, str]] = []
        self._uncertain = 0
        self._texts: list[bytes] = []
        self._results: list[Result | None] = []

    def add(self, sql: str, parameters: Any = ()) -> Any:
        """Add a statement, with parameters as in `Session.execute`; returns its result."""
        if not parameters:
            return self._add(sql.encode())
        text, names = _number(sql)
        given = without_nul(parameters)
        values = given if not names else [given[name] for name in names]
        if any(isinstance(value, bytes | str) and len(value) > _LARGE for value in values):
            self.send()
            return Session(self._raw).execute(sql, parameters)
        name = self._prepare(text, ", ".join(map(_type_of, values)))
        literals = b", ".join(map(self._literal, values))
        return self._add(b"EXECUTE %b(%b)" % (name, literals))

    def send(self) -> None:
        """Send all statements, and read their results; raises the first error."""
        texts, results = self._texts, self._results
        self._texts, self._results = [], []
        if not texts:
            return
        # On lines of their own: a comment at a statement's end hides no other.
        cursor = self._raw.execute(b"\n;".join(texts), prepare=False)
        has_more: bool | None = True
        for result in results:
            if not has_more:
                raise psycopg.ProgrammingError("a statement of a batch has no result")
            if result is not None:
                has_rows = cursor.pgresult is not None and cursor.pgresult.nfields
                rows = cursor.fetchall() if has_rows else ()
                result.set(cursor.rowcount, rows, cursor.statusmessage)
            has_more = cursor.nextset()
        if has_more:
            raise psycopg.ProgrammingError("a text of a batch has several statements")
        self._unconfirmed.clear()

    def forget(self) -> None:
        """Discard the statements that were not sent, after an error.

        Whether the server has prepared the new ones is unknown. Closes a connection that may have
        too many of them.
        """
        self._texts.clear()
        self._results.clear()
        for key in self._unconfirmed:
            self._prepared.pop(key, None)
        self._uncertain += len(self._unconfirmed)
        self._unconfirmed.clear()
        if self._uncertain > _MOST_PREPARED:
            self._raw.close()

    def _add(self, text: bytes) -> Result:
        result = Result(self)
        self._texts.append(text)
        self._results.append(result)
        return result

    def _prepare(self, text: str, types: str) -> bytes:
        """Return the name of a prepared statement; the batch prepares it if it is new."""
        key = text, types
        name = self._prepared.get(key)
        if name is not None:
            self._prepared.move_to_end(key)
            return name
        name = self._prepared[key] = b"%b_%d" % (self._prefix, next(self._numbers))
        self._unconfirmed.append(key)
        self._send_first(b"PREPARE %b(%b) AS %b" % (name, types.encode(), text.encode()))
        if len(self._prepared) > _MOST_PREPARED:
            _, oldest = self._prepared.popitem(last=False)
            self._send_first(b"DEALLOCATE %b" % oldest)
        return name

    def _send_first(self, text: bytes) -> None:
        self._texts.append(text)
        self._results.append(None)

    def _literal(self, value: Any) -> bytes:
        if value is None:
            return b"NULL"
        if isinstance(value, str):
            # By libpq, for the connection's encoding, which is UTF-8.
            return self._escaping.escape_literal(value.encode())
        if isinstance(value, bytes):
            # Valid whatever `standard_conforming_strings` is.
            return b"E'\\\\x%b'" % value.hex().encode()
        if type(value) in (int, float):
            return b"'%b'" % repr(value).encode()
        return composing.Literal(value).as_bytes(self._raw)


def _type_of(value: object) -> str:
    """Return the type of a parameter. PostgreSQL infers that of texts, as psycopg lets it."""
    if type(value) is int and not -_MAX_BIGINT <= value < _MAX_BIGINT:
        return "numeric"
    return _TYPES.get(type(value), "unknown")


@functools.lru_cache(maxsize=1024)
def _number(sql: str) -> tuple[str, tuple[str, ...]]:
    """Translate placeholders to `$1`, `$2`, …; returns also the names of `:name`, by number."""
    names: list[str] = []
    numbers = itertools.count(1)

    def replace(found: re.Match[str]) -> str:
        if name := found.group(1):
            if name not in names:
                names.append(name)
            return f"${names.index(name) + 1}"
        return f"${next(numbers)}" if found.group() == "?" else found.group()

    return MARK.sub(replace, sql), tuple(names)
