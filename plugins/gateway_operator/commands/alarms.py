"""The command `gateway alarms`."""

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any

import attrs
import click

from gateway.cli.terminal import ListGroup, json_option, one_sentence, wide_option
from gateway.contracts import Clock
from gateway.errors import SettingsError
from gateway.plugins.manager import PluginManager
from gateway.settings import Settings, load_settings
from gateway_operator.alarms.carriers import LATE, Carrier
from gateway_operator.alarms.channels import make_carriers
from gateway_operator.alarms.durations import parse_length
from gateway_operator.alarms.messages import make_test, write_time
from gateway_operator.alarms.records import AlarmMessage, AlarmRecord
from gateway_operator.alarms.service import UNTIL_IT_ENDS, Alarms, current, mute
from gateway_operator.commands.session import open_session, shell_actor
from gateway_operator.tables import print_rows

_LIMIT_S = 90.0


@attrs.frozen(kw_only=True)
class _Trial:
    """The result of a test message; `problem` None: sent."""

    channel: str
    problem: str | None


@click.group(cls=ListGroup, invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")
@click.option("--past", is_flag=True, help="List ended alarms instead, newest first.")
@json_option
@wide_option
@click.pass_context
@one_sentence
def alarms(ctx: click.Context, *, past: bool, as_json: bool, wide: bool) -> None:
    """List and mute alarms, and test the alarm channels."""
    if ctx.invoked_subcommand is not None:
        return

    async def find() -> Alarms:
        async with open_session(load_settings()) as desk:
            return await current(desk)

    found = asyncio.run(find())
    records = [*found.past] if past else [*found.now, *found.muted]
    if not as_json:
        _print_unsent(found)
        if not records:
            click.echo("No alarm has ended yet." if past else "No alarm is on.")
    print_rows([_make_row(one) for one in records], as_json=as_json, wide=wide, stacked=_stack)


@alarms.command("test")
@json_option
@one_sentence
def test_channels(*, as_json: bool) -> None:
    """Send a test message by every channel, and print the results."""
    trials = asyncio.run(_try_all())
    rows = [{"channel": one.channel, "problem": one.problem or ""} for one in trials]
    if as_json:
        print_rows([attrs.asdict(one) for one in trials], as_json=True)
    else:
        print_rows(
            [row | {"problem": row["problem"] or "none: sent"} for row in rows], as_json=False
        )
    if any(one.problem for one in trials):
        sys.exit(1)


async def _try_all() -> Sequence[_Trial]:
    settings = load_settings()
    carriers = make_carriers(
        settings, time.time, PluginManager(disabled=settings.plugins_disabled).notifiers()
    )
    if not carriers:
        raise SettingsError(
            "No channel is set. Set GATEWAY_ALARM_WEBHOOK or GATEWAY_ALARM_URLS (docs/alarms.md)."
        )
    return await _try_channels(settings, carriers, time.time)


@alarms.command("mute")
@click.argument("key")
@click.option(
    "--for",
    "length",
    required=True,
    help="How long: 30m, 1h, 1d; `ends`: until it ends; 0: unmute.",
)
@click.option("--reason", required=True, help="The reason, for the audit log.")
@one_sentence
def mute_alarm(*, key: str, length: str, reason: str) -> None:
    """Send no messages about the alarm KEY for some time."""

    async def mute_key() -> AlarmRecord:
        async with open_session(load_settings()) as desk:
            for_s = parse_length(length)
            return await mute(desk, shell_actor(), key, for_s=for_s, reason=reason)

    muted = asyncio.run(mute_key())
    if muted.muted_until is None:
        click.echo(f"{muted.key} is no longer muted.")
    else:
        click.echo(f"{muted.key} is muted until {_write_end(muted.muted_until)}.")


def _print_unsent(found: Alarms) -> None:
    waiting = [one for one in found.unsent if one.due_at is not None]
    if found.unsent:
        newest = found.unsent[0]
        click.echo(
            f"{len(found.unsent)} messages could not be sent ({len(waiting)} will be retried). "
            f"The newest, by {newest.channel}: {newest.problem}",
            err=True,
        )


def _make_row(record: AlarmRecord) -> dict[str, Any]:
    return {
        "key": record.key,
        "urgency": record.urgency,
        "what": record.text.get("title", ""),
        "since": write_time(record.since),
        "ended": "" if record.ended_at is None else write_time(record.ended_at),
        "muted": "" if record.muted_until is None else _write_end(record.muted_until),
        "details": record.text.get("text", ""),
        "todo": record.text.get("todo", ""),
    }


def _write_end(until: float) -> str:
    return "it ends" if until >= UNTIL_IT_ENDS else write_time(until)


def _stack(row: dict[str, Any]) -> dict[str, Any]:
    times = [row["since"]]
    times += [f"ended {row['ended']}"] if row["ended"] else []
    times += [f"muted until {row['muted']}"] if row["muted"] else []
    return {
        "key, urgency": f"{row['key']}\n{row['urgency']}",
        "since": "\n".join(times),
        "what": "\n".join(filter(None, (row["what"], row["details"], row["todo"]))),
    }


async def _try_channels(
    settings: Settings, carriers: Sequence[Carrier], now: Clock
) -> list[_Trial]:
    found = await asyncio.gather(*(_try(settings, one, now) for one in carriers))
    return [trial for trials in found for trial in trials]


async def _try(settings: Settings, carrier: Carrier, now: Clock) -> list[_Trial]:
    alarm = make_test(settings.base_url, settings.name, now())
    messages = [
        # Receivers recognize messages by id, so it must be none of the queue's.
        AlarmMessage(id=-place, channel=channel, alarm=alarm, created_at=now(), due_at=None)
        for place, channel in enumerate(carrier.channels, start=int(now()))
    ]
    try:
        async with asyncio.timeout(_LIMIT_S):
            outcomes = await carrier.carry({one.channel: [one] for one in messages})
    except TimeoutError:
        outcomes = {}
    except Exception as error:  # noqa: BLE001 - a carrier's edge
        outcomes = {one.id: f"It failed: {type(error).__name__}." for one in messages}
    return [_Trial(channel=one.channel, problem=outcomes.get(one.id, LATE)) for one in messages]
