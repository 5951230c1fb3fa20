"""Notices that another server stands in for the one that took the payments before.

A standby that was not waited for lacks the newest commits, and so does a copy: what they do not
know to be spent could be spent again. So the first start on such a server dates the database to
that moment, as `gateway restore` does: transfers from before are refused. docs/scale.md has it for
operators.
"""

from typing import Any

import psycopg
import structlog

from gateway_nodes.postgres.locks import lock_number

_log = structlog.get_logger()

_META = "database_server"
_UNKNOWN = "unknown"
# Its clock may be behind the chain's, by which transfers are dated.
_MARGIN_S = 5.0
_WAITS, _WAITS_NOT = "waits for a standby", "waits for no standby"


def read_server(raw: psycopg.Connection[Any]) -> str:
    """Return the server's cluster and timeline: another one where a standby or a copy took over.

    Raises `psycopg.OperationalError` on a standby: its timeline is still the old one, and it may
    become the primary at any moment.
    """
    return f"{_read_cluster(raw)}, {_read_timeline(raw)}"


def _read_timeline(raw: psycopg.Connection[Any]) -> str:
    row = raw.execute(
        b"""SELECT CASE WHEN pg_is_in_recovery() THEN NULL
            ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"""
    ).fetchone()
    if row is None or row[0] is None:
        raise psycopg.OperationalError("the server is a standby")
    return str(row[0])


def date_anew_after_failover(raw: psycopg.Connection[Any]) -> bool:
    """Compare the server with the one of the start before; returns whether anything may be lost.

    Where it may, transfers from before now are refused from this transaction on. Of several nodes
    that start at once, one does it.
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
        # Of a cluster without a name nobody knows whether a standby took over, or a copy.
        is_whole = known_cluster == cluster != _UNKNOWN and known_waits == _WAITS
        if is_same or is_whole:
            return False
        raw.execute("DELETE FROM meta WHERE key = 'floor_block'")
        _keep(raw, "born_at", _read_now(raw))
    _log.warning("database.dated_anew", known=known_timeline, found=timeline)
    return True


def _keep(raw: psycopg.Connection[Any], key: str, value: str) -> None:
    raw.execute(
        """INSERT INTO meta (key, value) VALUES (%s, %s)
           ON CONFLICT (key) DO UPDATE SET value = excluded.value""",
        (key, value),
    )


def _read_cluster(raw: psycopg.Connection[Any]) -> str:
    """Return what a cluster and its standbys share; a copy by SQL goes to another one."""
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
