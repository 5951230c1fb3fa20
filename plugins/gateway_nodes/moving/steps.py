"""The steps of a move; after a crash between any two, one database at most sells.

1. The file is barred (`notes.begin`).
2. Everything is copied in one transaction, which also writes this move's id into PostgreSQL.
3. COMMIT.
4. The file is noted as moved (`notes.finish`).

After a crash the file is barred, and PostgreSQL tells by the id whether the third step was done.
"""

import contextlib
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.errors import SettingsError
from gateway.store.moved import Move, move_of
from gateway_nodes.moving import copying, notes

if TYPE_CHECKING:
    from gateway_nodes.moving.target import Target


@contextlib.contextmanager
def open_source(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file so that a COMMIT that returned survives a power cut.

    The caller has locked its folder, and brought it to the newest schema unless a move has begun.
    """
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        db.execute("PRAGMA synchronous = FULL")
        yield db


def move(source: sqlite3.Connection, target: "Target", address: str) -> copying.Copied | None:
    """Move a file's rows to an empty database, or end a move that was cut off.

    `target` has the newest schema and is in no transaction. Returns None where an earlier run had
    copied everything. Raises `SettingsError`, such as for a database that is not empty.
    """
    begun = move_of(source)
    _check_begun(begun, address)
    if begun is not None and _has(target, begun):
        notes.finish(source)
        return None
    copied, id_ = _copy(source, target, address, begun)
    if _origin(target) != id_:
        raise SettingsError(
            f"{notes.shown(address)} did not keep what it was given. Run `gateway migrate-store` "
            "again; until then this file stays barred."
        )
    notes.finish(source)
    return copied


def take_back(source: sqlite3.Connection, target: "Target", address: str) -> None:
    """Let a gateway run on the file again; raises `SettingsError` where the other has its rows."""
    begun = move_of(source)
    if begun is None:
        raise SettingsError("No move has begun, so there is nothing to take back.")
    _check_begun(begun, address)
    if _has(target, begun):
        raise SettingsError(
            f"{begun.target} has everything already, so nothing is taken back. Run "
            "`gateway migrate-store` without --take-back: it ends the move."
        )
    notes.take_back(source)


def _check_begun(begun: Move | None, address: str) -> None:
    if begun is None:
        return
    if begun.is_done:
        raise SettingsError(
            f"This database was moved to {begun.target} already. Set GATEWAY_DATABASE_URL to it."
        )
    if begun.target != notes.shown(address):
        raise SettingsError(
            f"A move to {begun.target} has begun. Name that database, to end the move or, with "
            "--take-back, to take it back."
        )


def _has(target: "Target", begun: Move) -> bool:
    return _origin(target) == begun.id


def _origin(target: "Target") -> str | None:
    with _transaction(target):
        return copying.origin_of(target)


def _copy(
    source: sqlite3.Connection, target: "Target", address: str, begun: Move | None
) -> tuple[copying.Copied, str]:
    """Copy everything and commit; returns what was copied, and the move's id."""
    tables = copying.tables_of(source)
    target.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        copying.check_target(target, tables)
        if begun is None:
            fresh = Move(id=secrets.token_hex(16), target=notes.shown(address), is_done=False)
            notes.begin(source, fresh)
            begun = fresh
        copied = copying.copy(source, target, tables, begun.id)
    except BaseException:
        # COMMIT was never sent, so nothing is there.
        _roll_back(target)
        if begun is not None:
            notes.take_back(source)
        raise
    target.execute("COMMIT")
    return copied, begun.id


def _roll_back(target: "Target") -> None:
    # A lost connection may be why: then the server rolls back by itself.
    with contextlib.suppress(Exception):
        target.execute("ROLLBACK")


@contextlib.contextmanager
def _transaction(target: "Target") -> Iterator[None]:
    target.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        yield
    except BaseException:
        _roll_back(target)
        raise
    target.execute("COMMIT")
