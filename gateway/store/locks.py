"""Which writes must run one after the other over all nodes, because no unique key decides them.

SQLite lets one writer in. On PostgreSQL each write sees the state at its beginning, and two that
read the same rows could both go on. What a primary key or a state in a WHERE decides needs nothing
more: the loser runs again. A write that decides by a sum or by the absence of rows is `@locked`: it
waits for a lock by name, which is taken before its state of the database begins.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Write = TypeVar("Write", bound=Callable[..., Any])
# Called with the write's arguments, without the connection.
NameLocks = Callable[..., Sequence[str]]


def locked(names: str | NameLocks) -> Callable[[Write], Write]:
    """Mark a write as one that takes a lock, or the locks that its arguments name."""
    name_locks: NameLocks = (lambda *_: [names]) if isinstance(names, str) else names

    def mark(write: Write) -> Write:
        vars(write)["name_locks"] = name_locks
        return write

    return mark


def lock_names(function: Callable[..., Any], arguments: Sequence[Any]) -> Sequence[str]:
    """Return the names of the locks that a write needs, in the order to take them."""
    name_locks: NameLocks | None = getattr(function, "name_locks", None)
    return name_locks(*arguments) if name_locks is not None else []
