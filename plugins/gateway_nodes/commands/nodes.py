"""The command `gateway nodes`."""

import asyncio
import time

import click

from gateway.cli.terminal import one_sentence
from gateway.contracts.nodes import NodeRecord
from gateway.settings import Settings, load_settings
from gateway_nodes.records import ROLES, report_missing_roles
from gateway_operator.commands.session import open_session
from gateway_operator.desk.wording import age

# A running node records itself every few seconds.
_GONE_S = 20.0


@click.command()
@one_sentence
def nodes() -> None:
    """List the nodes that share the database.

    One of them is the leader.
    """
    settings = load_settings()
    if not settings.database_url:
        click.echo("One node, on SQLite. Several nodes need PostgreSQL: set GATEWAY_DATABASE_URL.")
        return
    found = asyncio.run(_find_nodes(settings))
    if not found:
        click.echo("No node has run on this database in the last day.")
    width = max((len(node.name) for node in found), default=0)
    for node in found:
        click.echo(f"{node.name:<{width}}  {node.version}  {_describe(node, time.time())}")
    for sentence in report_missing_roles(found) if found else ():
        click.echo(sentence)


async def _find_nodes(settings: Settings) -> list[NodeRecord]:
    async with open_session(settings) as desk:
        return await desk.store.nodes.nodes()


def _describe(node: NodeRecord, now: float) -> str:
    silent_s = max(now - node.seen_at, 0.0)
    if node.is_stopped:
        return f"stopped {age(silent_s)} ago"
    if silent_s > _GONE_S:
        return f"gone without a stop, last seen {age(silent_s)} ago"
    roles = "all" if len(node.roles) == len(ROLES) else ", ".join(node.roles)
    return f"runs ({roles}){', and leads' if node.is_leader else ''}"
