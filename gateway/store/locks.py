"""Named locks for writes that no unique key protects.

SQLite allows only one writer. On PostgreSQL, each write sees a snapshot from its beginning, and two
writes that read the same rows could both succeed. A primary key, or a state in the WHERE clause,
already settles such a race: the loser is retried. A write whose decision depends on a sum or on the
absence of rows is `@locked`: it takes a named lock before its snapshot begins.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Write = TypeVar("Write", bound=Callable[..., Any])
# Called with the write's arguments, but without the connection.
NameLocks = Callable[..., Sequence[str]]


def locked(names: str | NameLocks) -> Callable[[Write], Write]:
    """Make a write take the named lock, or the locks computed from its arguments."""
    name_locks: NameLocks = (lambda *_: [names]) if isinstance(names, str) else names

    def mark(write: Write) -> Write:
        vars(write)["name_locks"] = name_locks
        return write

    return mark


def lock_names(function: Callable[..., Any], arguments: Sequence[Any]) -> Sequence[str]:
    """Return the names of a write's locks, in the order to take them."""
    name_locks: NameLocks | None = getattr(function, "name_locks", None)
    return name_locks(*arguments) if name_locks is not None else []
