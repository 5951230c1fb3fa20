"""The command `gateway actions`: the audit log."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import click

from gateway.cli.terminal import json_option, one_sentence, wide_option
from gateway.settings import load_settings
from gateway_operator.audit_log import ActionRecord
from gateway_operator.commands.session import open_session
from gateway_operator.tables import print_rows


@click.command()
@click.option("--subject", help="Only actions on this task, endpoint or alarm.")
@click.option("--action", help="Only actions of this kind, such as refund.approve.")
@click.option("--before", type=int, help="Only actions with a lower id, for the next page.")
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1), help="Maximum number of rows."
)
@json_option
@wide_option
@one_sentence
def actions(
    *,
    subject: str | None,
    action: str | None,
    before: int | None,
    limit: int,
    as_json: bool,
    wide: bool,
) -> None:
    """List the audit log: who did what, when and why.

    The newest actions come first.
    """

    async def find() -> list[ActionRecord]:
        async with open_session(load_settings()) as desk:
            return await desk.records.actions(before, limit, subject, action)

    found = asyncio.run(find())
    if not found and not as_json:
        click.echo("No matching actions.")
        return
    print_rows([_make_row(one) for one in found], as_json=as_json, wide=wide, stacked=_stack_row)


def _make_row(action: ActionRecord) -> dict[str, Any]:
    return {
        "id": action.id,
        "at": datetime.fromtimestamp(action.at, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        "who": action.actor.name,
        "door": action.actor.door,
        "address": action.actor.address,
        "action": action.action,
        "subject": action.subject,
        "reason": action.reason,
        "before": _format_value(action.before),
        "after": _format_value(action.after),
    }


def _format_value(value: object) -> str:
    return "" if value is None else json.dumps(value)


def _stack_row(row: dict[str, Any]) -> dict[str, Any]:
    """Use fewer columns on a narrow terminal."""
    who = [row["who"], row["door"], *filter(None, [row["address"]])]
    change = [f"{name}: {row[name]}" for name in ("before", "after") if row[name]]
    return {
        "id, at": f"{row['id']}\n{row['at']}",
        "who": "\n".join(who),
        "action, subject": f"{row['action']}\n{row['subject']}",
        "reason, change": "\n".join(filter(None, [row["reason"], *change])),
    }
