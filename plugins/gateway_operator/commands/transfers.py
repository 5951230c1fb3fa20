"""The command `gateway transfers`: unused transfers."""

import asyncio

import click

from gateway.cli.terminal import FiniteRange, ListGroup, json_option, one_sentence, wide_option
from gateway.domain import MinedTransfer
from gateway.errors import SettingsError
from gateway.settings import load_settings
from gateway_operator.actions.transfers import mark_seen
from gateway_operator.commands.session import open_session, shell_actor
from gateway_operator.sql import seen_transfers
from gateway_operator.tables import print_rows
from gateway_operator.unused_transfers import list_unused

# Ten years of days; as hours, five months.
_AMOUNT = FiniteRange(0, 3650)


@click.group(cls=ListGroup, invoke_without_command=True)
@json_option
@wide_option
@click.pass_context
@one_sentence
def transfers(context: click.Context, *, as_json: bool, wide: bool) -> None:
    """List unused transfers to the wallet.

    Without a command, those of `unused` with its defaults.
    """
    if context.invoked_subcommand is None:
        context.invoke(unused, as_json=as_json, wide=wide)


@transfers.command()
@click.option(
    "--days", default=7.0, show_default=True, type=_AMOUNT, help="How many days to search."
)
@click.option(
    "--hours", type=_AMOUNT, help="Leave out younger transfers.  [default: too old to pay]"
)
@json_option
@wide_option
@one_sentence
def unused(*, days: float, hours: float | None, as_json: bool, wide: bool) -> None:
    """List transfers to the wallet that paid for nothing.

    These are USDC transfers whose hash no buyer has sent.
    """

    async def find() -> tuple[list[MinedTransfer], dict[tuple[str, int], str]]:
        settings = load_settings()
        # Younger transfers may still pay for a task.
        age_hours = max(24.0, settings.max_transfer_age_hours) if hours is None else hours
        async with open_session(settings) as desk:
            found = await list_unused(
                desk.chain, desk.store, settings.wallet_key, days=days, hours=age_hours
            )
            hashes = [each.tx_hash for each in found]
            return found, await desk.store.sum(seen_transfers.reasons, hashes)

    transfers, reasons = asyncio.run(find())
    rows = [
        {
            "transaction": found.tx_hash,
            "log": found.log_index,
            "block": found.block_number,
            "from": found.sender,
            "amount": f"{found.amount_units / 10**6:g}",
            "seen": reasons.get((found.tx_hash, found.log_index), ""),
        }
        for found in transfers
    ]
    if not rows and not as_json:
        click.echo("No unused transfers.")
        return
    print_rows(rows, as_json=as_json, wide=wide)


@transfers.command(
    hidden=True,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@one_sentence
def unclaimed() -> None:
    """Refuse the former name."""
    raise SettingsError("`gateway transfers unclaimed` is now `gateway transfers unused`.")


@transfers.command()
@click.argument("tx_hash")
@click.argument("log_index", type=click.IntRange(0))
@click.option("--reason", required=True, help="What was done about it, for the audit log.")
@one_sentence
def seen(*, tx_hash: str, log_index: int, reason: str) -> None:
    """Mark an unused transfer as seen. The list shows the reason."""

    async def act() -> None:
        async with open_session(load_settings()) as desk:
            await mark_seen(desk, shell_actor(), tx_hash, log_index, reason=reason)

    asyncio.run(act())
    click.echo("Marked as seen.")
