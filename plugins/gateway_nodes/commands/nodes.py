"""The command `gateway nodes`."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from gateway.cli.terminal import json_option, one_sentence
from gateway.contracts.nodes import NodeRecord
from gateway.settings import Settings, load_settings
from gateway_nodes.key_leases import Leases, read_leases
from gateway_nodes.records import ROLES, report_missing_roles
from gateway_operator.commands.session import open_session
from gateway_operator.desk.wording import age, counted
from gateway_operator.tables import print_rows

# A running node records itself every few seconds.
_GONE_S = 20.0


@click.command()
@json_option
@one_sentence
def nodes(*, as_json: bool) -> None:
    """List the nodes that share the database.

    One of them is the leader.
    """
    settings = load_settings()
    if as_json:
        found, leases = asyncio.run(_find_nodes(settings)) if settings.database_url else ([], {})
        rows = [_make_row(node, leases.get(node.name, ()), time.time()) for node in found]
        print_rows(rows, as_json=True)
        return
    if not settings.database_url:
        click.echo("One node, on SQLite. Several nodes need PostgreSQL: set GATEWAY_DATABASE_URL.")
        return
    found, leases = asyncio.run(_find_nodes(settings))
    if not found:
        click.echo("No node has run on this database in the last day.")
    width = max((len(node.name) for node in found), default=0)
    for node in found:
        keys = leases.get(node.name, ())
        click.echo(f"{node.name:<{width}}  {node.version}  {_describe(node, keys, time.time())}")
    for sentence in report_missing_roles(found) if found else ():
        click.echo(sentence)


async def _find_nodes(
    settings: Settings,
) -> tuple[list[NodeRecord], Mapping[str, Sequence[str]]]:
    """Return the nodes, and the settlement keys of each."""
    async with open_session(settings) as desk:
        leases: Leases = await desk.store.read(read_leases)
        return await desk.store.nodes.nodes(), leases.own


def _make_row(node: NodeRecord, keys: Sequence[str], now: float) -> dict[str, Any]:
    return {
        "node": node.name,
        "version": node.version,
        "state": _state_of(node, now),
        "leads": node.is_leader,
        "roles": list(node.roles),
        "keys": list(keys),
        "seen": datetime.fromtimestamp(node.seen_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _state_of(node: NodeRecord, now: float) -> str:
    if node.is_stopped:
        return "stopped"
    return "gone" if now - node.seen_at > _GONE_S else "running"


def _describe(node: NodeRecord, keys: Sequence[str], now: float) -> str:
    silent_s = max(now - node.seen_at, 0.0)
    if node.is_stopped:
        return f"stopped {age(silent_s)} ago"
    if silent_s > _GONE_S:
        return f"gone without a stop, last seen {age(silent_s)} ago"
    roles = "all" if len(node.roles) == len(ROLES) else ", ".join(node.roles)
    own = f", with {counted(len(keys), 'settlement key')}" if keys else ""
    return f"runs ({roles}){own}{', and leads' if node.is_leader else ''}"
