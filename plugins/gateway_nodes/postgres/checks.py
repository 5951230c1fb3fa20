"""PostgreSQL checks for `gateway check`; each returns its finding as a sentence.

They are read-only and do not migrate the schema, because nodes of another release may use it.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import psycopg

from gateway.errors import SettingsError
from gateway.store.sql import MAX_SKEW_S
from gateway_nodes.key_leases import read_leases
from gateway_nodes.postgres.migrations import migrations, version_of
from gateway_nodes.postgres.session import Session, connect, refuse_pooling
from gateway_nodes.records import find_nodes, report_missing_roles

# Leases last a minute, and clocks decide when they expire.
_MAX_SKEW_S = 1.0


@attrs.frozen(kw_only=True)
class Finding:
    """The result of one check."""

    name: str
    ok: bool
    found: str

    async def result(self) -> str:
        """Return the sentence, or raise it as a `ValueError` if the check failed."""
        if not self.ok:
            raise ValueError(self.found)
        return self.found


def run_checks(address: str) -> list[Finding]:
    """Run all checks on one connection; if that fails, return a single finding."""
    try:
        with connect(address, "gateway check") as raw:
            return [_run_check(name, partial(one, raw, address)) for name, one in _CHECKS.items()]
    except psycopg.Error as error:
        reason = str(error).strip().partition("\n")[0]
        found = f"the database of GATEWAY_DATABASE_URL does not answer ({reason})"
        return [Finding(name="database", ok=False, found=found)]


def _run_check(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name=name, ok=True, found=check())
    except SettingsError as error:
        return Finding(name=name, ok=False, found=str(error))


def check_server(raw: psycopg.Connection[Any], _: str = "") -> str:
    """Return the server's version; raises `SettingsError` if it is read-only."""
    version, is_standby, is_read_only = _first(
        raw,
        """SELECT current_setting('server_version'), pg_is_in_recovery(),
           current_setting('transaction_read_only') = 'on'""",
    )
    if is_standby or is_read_only:
        raise SettingsError(
            "GATEWAY_DATABASE_URL leads to a standby, which takes no writes: name the primary."
        )
    return f"PostgreSQL {version}, writable"


def check_durability(raw: psycopg.Connection[Any], _: str = "") -> str:
    """Return whether a standby confirms commits; raises `SettingsError` if they are not durable."""
    fsync, pages, standbys = _first(
        raw,
        """SELECT current_setting('fsync'), current_setting('full_page_writes'),
           current_setting('synchronous_standby_names')""",
    )
    if fsync != "on" or pages != "on":
        raise SettingsError(
            "The server forgets payments in a power cut: set fsync and full_page_writes to on."
        )
    if standbys:
        return f"a payment is on a standby as well before it is answered ({standbys})"
    return "a payment is on the primary's disk before it is answered; no standby is waited for"


def check_schema(raw: psycopg.Connection[Any], _: str = "") -> str:
    """Return the schema's version, now and after the next start."""
    version, newest = version_of(raw), migrations()[-1][0]
    if version == 0:
        return "empty; the first start makes the tables"
    if version < newest:
        return f"version {version}; the next start makes it {newest}"
    return f"version {version}"


def check_clock(raw: psycopg.Connection[Any], _: str = "") -> str:
    """Compare this machine's clock with the server's; raises `SettingsError`."""
    began = time.time()
    (there,) = _first(raw, "SELECT extract(epoch FROM clock_timestamp())::float8")
    ended = time.time()
    # The server read its clock at some moment between the two.
    skew_s = max(began - there, there - ended, 0.0)
    if skew_s > _MAX_SKEW_S:
        raise SettingsError(
            f"This machine's clock is {skew_s:.1f} s from the database's; from "
            f"{MAX_SKEW_S:.0f} s on a start is refused, and it works on nothing new. Let both "
            "take the time from a time server (NTP)."
        )
    return f"within {max(skew_s, ended - began):.3f} s of the database's clock"


def check_sessions(raw: psycopg.Connection[Any], address: str) -> str:
    """Check that sessions are not shared; raises `SettingsError` behind a transaction pooler."""
    refuse_pooling(raw, address)
    (most,) = _first(raw, "SELECT current_setting('max_connections')")
    return f"the gateway's own; the server takes {most} connections from all nodes together"


def check_nodes(raw: psycopg.Connection[Any], _: str = "") -> str:
    """Return the running nodes, and the roles that none of them has."""
    (table,) = _first(raw, "SELECT to_regclass('nodes')")
    running = [one for one in find_nodes(Session(raw)) if one.roles] if table else []
    if not running:
        return "none runs now"
    named = ", ".join(f"{one.name} ({', '.join(one.roles)})" for one in running)
    return " ".join([f"{named}.", *report_missing_roles(running)])


def check_keys(raw: psycopg.Connection[Any], _: str = "") -> str:
    """Return how nodes divide the settlement keys; raises `SettingsError` if a key is the limit."""
    (table,) = _first(raw, "SELECT to_regclass('roles')")
    leases = read_leases(Session(raw)) if table else None
    if leases is None or not (leases.own or leases.unknown):
        return "no running node has keys of its own"
    if leases.busy:
        raise SettingsError(
            f"x402 payments wait for {', '.join(leases.busy)}. Add keys to "
            "GATEWAY_SETTLEMENT_KEYS, each with a little ETH, and restart the nodes one by one; "
            "docs/scale.md has how many."
        )
    if leases.unknown:
        lacking = sorted({node for nodes in leases.unknown.values() for node in nodes})
        raise SettingsError(
            f"{', '.join(lacking)} lacks {', '.join(leases.unknown)}, so no node signs with it. "
            "Give all nodes the same GATEWAY_SETTLEMENT_KEYS, and restart those that lack a key."
        )
    held = ", ".join(f"{node} has {len(keys)}" for node, keys in sorted(leases.own.items()))
    sellers = [one.name for one in find_nodes(Session(raw)) if "web" in one.roles]
    without = [name for name in sellers if name not in leases.own]
    if not without:
        return held
    return f"{held}; these use the others' keys: {', '.join(without)} (docs/scale.md has how many)"


def _first(raw: psycopg.Connection[Any], sql: str) -> Any:
    row = raw.execute(sql.encode()).fetchone()
    if row is None:
        raise psycopg.InterfaceError("the server answered nothing")
    return row


_CHECKS: dict[str, Callable[[psycopg.Connection[Any], str], str]] = {
    "database": check_server,
    "database sessions": check_sessions,
    "database schema": check_schema,
    "database clock": check_clock,
    "database durability": check_durability,
    "database nodes": check_nodes,
    "settlement keys": check_keys,
}
