"""Detects that another server has replaced the one that recorded the payments before.

An asynchronous standby, or a copy, may lack the newest commits, so transfers that they recorded
could be spent again. The first start on such a server therefore sets the cutoff to that moment, as
`gateway restore` does: earlier transfers are refused. See docs/scale.md.
"""

from typing import Any

import psycopg
import structlog

from gateway_nodes.postgres.locks import lock_number

_log = structlog.get_logger()

_META = "database_server"
_UNKNOWN = "unknown"
# The server's clock may be behind the chain's, which dates transfers.
_MARGIN_S = 5.0
_WAITS, _WAITS_NOT = "waits for a standby", "waits for no standby"


def read_server(raw: psycopg.Connection[Any]) -> str:
    """Return the server's cluster and timeline, which change if a standby or a copy takes over.

    Raises `psycopg.OperationalError` on a standby: it still has the old timeline, and may be
    promoted at any moment.
    """
    return f"{_read_cluster(raw)}, {_read_timeline(raw)}"


def read_life(raw: psycopg.Connection[Any]) -> str:
    """Return what changes when the server recovers from a crash: when its statistics began.

    A crash discards them. It also loses the ids of transactions that were not written to the disk
    yet, and the server gives these ids to later transactions.
    """
    return str(_value(raw, "SELECT stats_reset FROM pg_stat_bgwriter"))


def _read_timeline(raw: psycopg.Connection[Any]) -> str:
    row = raw.execute(
        b"""SELECT CASE WHEN pg_is_in_recovery() THEN NULL
            ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"""
    ).fetchone()
    if row is None or row[0] is None:
        raise psycopg.OperationalError("the server is a standby")
    return str(row[0])


def set_cutoff_after_failover(raw: psycopg.Connection[Any]) -> bool:
    """Compare the server with that of the previous start; returns whether commits may be lost.

    If so, this transaction sets the cutoff: transfers from before now are refused. If several
    nodes start at once, one of them does it.
    """
    with raw.transaction():
        raw.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(_META),))
        cluster, timeline, waits = _read_cluster(raw), _read_timeline(raw), _read_waits(raw)
        known = raw.execute("SELECT value FROM meta WHERE key = %s", (_META,)).fetchone()
        _keep(raw, _META, f"{cluster}, {timeline}, {waits}")
        if known is None:
            return False
        known_cluster, known_timeline, known_waits = str(known[0]).split(", ")
        is_same = (known_cluster, known_timeline) == (cluster, timeline)
        # Without a known cluster, a promoted standby looks the same as a copy.
        is_whole = known_cluster == cluster != _UNKNOWN and known_waits == _WAITS
        if is_same or is_whole:
            return False
        raw.execute("DELETE FROM meta WHERE key = 'floor_block'")
        _keep(raw, "born_at", _read_now(raw))
    _log.warning("database.failed_over", known=known_timeline, found=timeline)
    return True


def _keep(raw: psycopg.Connection[Any], key: str, value: str) -> None:
    raw.execute(
        """INSERT INTO meta (key, value) VALUES (%s, %s)
           ON CONFLICT (key) DO UPDATE SET value = excluded.value""",
        (key, value),
    )


def _read_cluster(raw: psycopg.Connection[Any]) -> str:
    """Return the id that a cluster shares with its standbys; an SQL copy has another one."""
    allowed = _value(raw, "SELECT has_function_privilege('pg_control_system()', 'execute')")
    if not allowed:
        return _UNKNOWN
    return str(_value(raw, "SELECT system_identifier FROM pg_control_system()"))


def _read_waits(raw: psycopg.Connection[Any]) -> str:
    names = _value(raw, "SELECT current_setting('synchronous_standby_names')")
    return _WAITS if names else _WAITS_NOT


def _read_now(raw: psycopg.Connection[Any]) -> str:
    now = _value(raw, "SELECT extract(epoch FROM clock_timestamp())::float8")
    return str(now + _MARGIN_S)


def _value(raw: psycopg.Connection[Any], sql: str) -> Any:
    row = raw.execute(sql.encode()).fetchone()
    if row is None:
        raise psycopg.InterfaceError("the server answered nothing")
    return row[0]
