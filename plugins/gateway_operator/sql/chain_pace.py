"""The usual pace of the chain, as stored at the first start that could measure it.

Another pace is noticed, and becomes the usual one a day later. A restart changes nothing.
"""

import json

import attrs

from gateway.chain.pace import paces_differ
from gateway.store.sql import Connection

_KEY = "chain_pace"
_ACCEPTED_AFTER_S = 86_400.0


@attrs.frozen(kw_only=True)
class UsualPace:
    """Seconds between two blocks, and since when another pace is measured (Unix seconds)."""

    block_s: float
    differs_since: float | None = None


def read(db: Connection) -> UsualPace | None:
    """Return the stored pace, or None before the first measurement."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (_KEY,)).fetchone()
    return None if row is None else UsualPace(**json.loads(row[0]))


def note(db: Connection, block_s: float, now: float) -> UsualPace:
    """Compare a measured pace with the stored one; return the pace that is now stored."""
    known = read(db)
    usual = _next(known, block_s, now)
    if usual != known:
        db.execute(
            "INSERT INTO meta (key, value) VALUES (?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (_KEY, json.dumps(attrs.asdict(usual))),
        )
    return usual


def _next(known: UsualPace | None, block_s: float, now: float) -> UsualPace:
    if known is None:
        return UsualPace(block_s=block_s)
    if not paces_differ(known.block_s, block_s):
        return attrs.evolve(known, differs_since=None)
    since = now if known.differs_since is None else known.differs_since
    if now - since >= _ACCEPTED_AFTER_S:
        return UsualPace(block_s=block_s)
    return attrs.evolve(known, differs_since=since)
