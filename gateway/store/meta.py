"""Values that are kept by name, and login attempts: writes about neither payments nor tasks."""

import secrets

from gateway.store.locks import locked
from gateway.store.sql import Connection


def find_or_make(db: Connection, key: str, made: str) -> str:
    """Return the value that is stored under a key; where there is none, store `made` first."""
    db.execute("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING", (key, made))
    value: str = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0]
    return value


def note_write(db: Connection, now: float) -> None:
    """Note when a write was tried last: the value differs each time, so something is written."""
    db.execute(
        "INSERT INTO meta (key, value) VALUES ('written_at', ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (str(now),),
    )


def write_something(db: Connection) -> None:
    """Write more than one page, which no server compresses, and take it back."""
    text = secrets.token_hex(20_000)
    db.execute(
        "INSERT INTO meta (key, value) VALUES ('room', ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (text,),
    )
    db.execute("DELETE FROM meta WHERE key = 'room'")


# How many attempts there were in a window.
@locked("logins")
def count_login_attempt(
    db: Connection,
    address: str,
    limit: int,
    window_s: int,
    total: tuple[int | None, int],
    now: float,
) -> float:
    """Count a login attempt; returns 0, or the seconds until the next one is allowed.

    `total` is the limit over all addresses (None: no limit) and its window in seconds. A refused
    attempt is not written down, so that there are no more rows than the limits allow.
    """
    total_limit, total_window_s = total
    oldest = now - max(window_s, total_window_s)
    db.execute("DELETE FROM login_attempts WHERE at <= ?", (oldest,))
    nth_newest = "ORDER BY at DESC LIMIT 1 OFFSET ?"
    row = db.execute(
        f"SELECT at FROM login_attempts WHERE address = ? AND at > ? {nth_newest}",  # noqa: S608 - a constant
        (address, now - window_s, limit - 1),
    ).fetchone()
    if row is not None:
        return float(row[0]) + window_s - now
    if total_limit is not None:
        row = db.execute(
            f"SELECT at FROM login_attempts WHERE at > ? {nth_newest}",  # noqa: S608 - a constant
            (now - total_window_s, total_limit - 1),
        ).fetchone()
        if row is not None:
            return float(row[0]) + total_window_s - now
    db.execute("INSERT INTO login_attempts (address, at) VALUES (?, ?)", (address, now))
    return 0.0
