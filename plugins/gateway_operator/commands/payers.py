"""The command `gateway payers`: payers that are barred from x402."""

import asyncio
import contextlib
import re
import time
from typing import Any

import click

from gateway.cli.terminal import ListGroup, json_option, one_sentence
from gateway.contracts.store import FailedSettlement
from gateway.errors import ActionRefused
from gateway.payments.exposure import BARRED_S
from gateway.settings import load_settings
from gateway.store.payers import lift as lift_in_store
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.commands.session import open_session, shell_actor
from gateway_operator.desk.desk import Desk
from gateway_operator.tables import print_rows


@click.group(cls=ListGroup, invoke_without_command=True)
@json_option
@click.pass_context
@one_sentence
def payers(context: click.Context, *, as_json: bool) -> None:
    """List payers that are barred from x402, and unbar them.

    A payer is barred after a settlement of its payment failed on-chain. Without a command, the
    barred ones are listed.
    """
    if context.invoked_subcommand is None:
        context.invoke(barred, as_json=as_json)


@payers.command()
@json_option
@one_sentence
def barred(*, as_json: bool) -> None:
    """List barred payers, who may pay by direct transfer only."""

    async def find() -> list[FailedSettlement]:
        async with open_session(load_settings()) as desk:
            return await desk.store.payers.failures(since=time.time() - BARRED_S)

    rows = [_make_row(failure) for failure in asyncio.run(find())]
    if not rows and not as_json:
        click.echo("No payer is barred.")
        return
    print_rows(rows, as_json=as_json)


def _make_row(failure: FailedSettlement) -> dict[str, Any]:
    until = time.gmtime(failure.at + BARRED_S)
    return {
        "payer": failure.payer,
        "why": failure.failure,
        "until": time.strftime("%Y-%m-%d %H:%M UTC", until),
        "burned": f"{failure.fee_wei / 10**18:.9f} ETH",
        "transaction": failure.tx_hash,
    }


@payers.command()
@click.argument("address")
@click.option("--note", "--reason", "note", required=True, help="The reason, for the audit log.")
@one_sentence
def lift(*, address: str, note: str) -> None:
    """Unbar a payer: failed settlements so far no longer count."""
    if not re.fullmatch(r"0x[0-9a-fA-F]{40}", address):
        raise click.BadParameter("an address is 0x followed by 40 hexadecimal digits")

    async def act() -> None:
        async with open_session(load_settings()) as desk:
            await _lift_bar(desk, shell_actor(), address, reason=note)

    asyncio.run(act())
    click.echo(f"{address} may pay by x402 again.")


async def _lift_bar(desk: Desk, actor: Actor, address: str, *, reason: str) -> None:
    """Unbar a payer; raises `ActionRefused` if it is not barred."""
    payer, now = address.lower(), desk.now()
    if await desk.store.payers.failure_of(payer, since=now - BARRED_S) is None:
        raise ActionRefused(
            f"{address} is not barred; `gateway payers barred` lists those that are."
        )
    action = NewAction(actor=actor, at=now, action="payer.lift", subject=payer, reason=reason)
    with contextlib.suppress(AlreadyDone):
        await desk.records.act(lift_in_store, payer, reason, now, action=action)
