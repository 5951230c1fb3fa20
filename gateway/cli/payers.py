"""The command `gateway payers`: who is barred from x402, and how to let them in again."""

import asyncio
import re
import time
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.terminal import one_sentence, print_rows

if TYPE_CHECKING:
    from gateway.contracts.payers import FailedSettlement


@click.group()
def payers() -> None:
    """Look at payers whose settlements failed on-chain, and lift what that bars them from."""


@payers.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@one_sentence
def barred(*, as_json: bool) -> None:
    """List payers that pay by direct transfer only, since a settlement of theirs failed."""
    from gateway.cli import session as till  # noqa: PLC0415 - other commands start faster
    from gateway.payments.exposure import BARRED_S  # noqa: PLC0415
    from gateway.settings import load_settings  # noqa: PLC0415

    async def look() -> list["FailedSettlement"]:
        async with till.open_session(load_settings()) as opened:
            return await opened.store.payers.failures(since=time.time() - BARRED_S)

    rows = [_row(failure, failure.at + BARRED_S) for failure in asyncio.run(look())]
    if not rows and not as_json:
        click.echo("No payer is barred.")
        return
    print_rows(rows, as_json=as_json)


def _row(failure: "FailedSettlement", until: float) -> dict[str, Any]:
    return {
        "payer": failure.payer,
        "why": failure.failure,
        "until": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(until)),
        "burned": f"{failure.fee_wei / 10**18:.9f} ETH",
        "transaction": failure.tx_hash,
    }


@payers.command()
@click.argument("address")
@click.option("--note", required=True, help="Why, for yourself.")
@one_sentence
def lift(*, address: str, note: str) -> None:
    """Let a payer buy by x402 again, whatever failed up to now."""
    from gateway.cli import session as till  # noqa: PLC0415
    from gateway.errors import SettingsError  # noqa: PLC0415
    from gateway.payments.exposure import BARRED_S  # noqa: PLC0415
    from gateway.settings import load_settings  # noqa: PLC0415

    if not re.fullmatch(r"0x[0-9a-fA-F]{40}", address):
        raise click.BadParameter("an address is 0x followed by 40 hexadecimal digits")

    async def forgive() -> None:
        now = time.time()
        async with till.open_session(load_settings()) as opened:
            if await opened.store.payers.failure_of(address.lower(), since=now - BARRED_S) is None:
                raise SettingsError(
                    f"{address} is not barred; `gateway payers barred` lists those that are."
                )
            await opened.store.payers.lift(address, note=note, now=now)

    asyncio.run(forgive())
    click.echo(f"{address} may pay by x402 again.")
