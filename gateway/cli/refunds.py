"""The commands `gateway refunds` and `gateway transfers`."""

import asyncio
import math
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.terminal import json_option, one_sentence, print_rows, wide_option

if TYPE_CHECKING:
    from gateway.domain import RefundCase


class _Amount(click.FloatRange):
    """A number in a range; `nan` is none, though it is not below or above any."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        amount = float(super().convert(value, param, ctx))
        if math.isnan(amount):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return amount


_AMOUNT = _Amount(0, 3650)
_TASKS = click.argument("task_ids", nargs=-1, metavar="[TASK_ID]...")


def _address(_: Any, __: Any, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"0x[0-9a-fA-F]{40}", value):
        raise click.BadParameter("an address is 0x followed by 40 hexadecimal digits")
    return value.lower() if value is not None else None


@click.group()
def refunds() -> None:
    """Look at, decide about and pay what is owed for tasks that failed."""


@refunds.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that are paid.")
@json_option
@wide_option
@one_sentence
def list_refunds(*, everything: bool, as_json: bool, wide: bool) -> None:
    """List refunds: whose, how much, why, and what keeps them."""
    from gateway.cli import session as till  # noqa: PLC0415 - other commands start faster
    from gateway.settings import load_settings  # noqa: PLC0415

    async def look() -> list["RefundCase"]:
        async with till.open_session(load_settings()) as opened:
            return await opened.store.refunds.cases(*(() if everything else till.OPEN))

    cases = asyncio.run(look())
    if not cases and not as_json:
        click.echo("Nothing is owed.")
        return
    print_rows([_row(case) for case in cases], as_json=as_json, wide=wide)


def _row(case: "RefundCase", **more: Any) -> dict[str, Any]:
    return {
        "task": case.task_id,
        "amount": f"{case.amount_units / 10**6:g}",
        "to": case.recipient,
        "state": str(case.payment.state),
        "decision": str(case.decision or ""),
        "why": case.reason,
        "problem": case.problem or "",
        "transaction": case.tx_hash or "",
        **more,
    }


@refunds.command()
@_TASKS
@click.option("--all", "everything", is_flag=True, help="Every refund that is due.")
@click.option("--to", "recipient", callback=_address, help="Pay this address, not the payer.")
@click.option("--note", default="", help="Why, for yourself.")
@one_sentence
def approve(*, task_ids: Sequence[str], everything: bool, recipient: str | None, note: str) -> None:
    """Approve refunds: the running gateway, or `gateway refunds pay`, sends them."""
    if everything and (task_ids or recipient is not None):
        raise click.UsageError("--all goes with neither tasks nor --to")
    if not task_ids and not everything:
        raise click.UsageError("Name the tasks, or say --all; `gateway refunds list` shows them.")
    decided = asyncio.run(_decide("approved", task_ids, recipient, note))
    click.echo(f"Approved: {decided}.")


@refunds.command()
@_TASKS
@click.option("--note", required=True, help="Why, for yourself.")
@one_sentence
def reject(*, task_ids: Sequence[str], note: str) -> None:
    """Reject refunds; an approval later takes that back."""
    if not task_ids:
        raise click.UsageError("Name the tasks; `gateway refunds list` shows them.")
    decided = asyncio.run(_decide("rejected", task_ids, None, note))
    click.echo(f"Rejected: {decided}.")


async def _decide(decision: str, task_ids: Sequence[str], recipient: str | None, note: str) -> int:
    """Decide about these tasks, or about every refund that is due; returns how many."""
    from gateway.cli import session as till  # noqa: PLC0415
    from gateway.domain import Decision, PaymentState  # noqa: PLC0415
    from gateway.settings import load_settings  # noqa: PLC0415

    async with till.open_session(load_settings()) as opened:
        due = await opened.store.refunds.cases(PaymentState.REFUND_DUE)
        task_ids = task_ids or [case.task_id for case in due]
        done = await till.decide(
            opened, task_ids, Decision(decision), recipient=recipient, note=note
        )
    return len(done)


@refunds.command()
@_TASKS
@click.option("--dry-run", is_flag=True, help="Only show what would be sent.")
@click.option(
    "--wait",
    "wait_s",
    default=60.0,
    show_default=True,
    type=_Amount(0),
    help="Seconds to wait at most.",
)
@json_option
@wide_option
@one_sentence
def pay(
    *, task_ids: Sequence[str], dry_run: bool, wait_s: float, as_json: bool, wide: bool
) -> None:
    """Send refunds now: every approved one, or those named (which approves them)."""
    cases = asyncio.run(_preview(task_ids) if dry_run else _pay(task_ids, wait_s))
    if not cases and not as_json:
        click.echo("Nothing is approved. `gateway refunds list` shows what is owed.")
        return
    print_rows(cases, as_json=as_json, wide=wide)
    is_done = (row["state"] == "refunded" or (dry_run and not row["problem"]) for row in cases)
    sys.exit(0 if all(is_done) else 1)


async def _preview(task_ids: Sequence[str]) -> list[dict[str, Any]]:
    from gateway.cli import session as till  # noqa: PLC0415
    from gateway.settings import load_settings  # noqa: PLC0415

    async with till.open_session(load_settings()) as opened:
        shown = await till.preview(opened, await till.payable(opened, task_ids))
    return [_row(case, problem=problem or "") for case, problem in shown]


async def _pay(task_ids: Sequence[str], wait_s: float) -> list[dict[str, Any]]:
    from gateway.cli import session as till  # noqa: PLC0415
    from gateway.domain import Decision, PaymentState  # noqa: PLC0415
    from gateway.settings import load_settings  # noqa: PLC0415

    async with till.open_session(load_settings()) as opened:
        opened.sender()  # without a key nothing is approved either
        cases = await till.payable(opened, task_ids)
        moving = PaymentState.REFUNDING
        new = [case.task_id for case in cases if case.payment.state is not moving]
        await till.decide(
            opened, new if task_ids else (), Decision.APPROVED, recipient=None, note=""
        )
        return [_row(case) for case in await till.pay(opened, cases, wait_s=wait_s)]


@click.group()
def transfers() -> None:
    """Look at what came into the wallet."""


@transfers.command()
@click.option("--days", default=7.0, show_default=True, type=_AMOUNT, help="How far to look back.")
@click.option("--hours", type=_AMOUNT, help="Leave out what is younger.  [default: too old to pay]")
@json_option
@wide_option
@one_sentence
def unclaimed(*, days: float, hours: float | None, as_json: bool, wide: bool) -> None:
    """List USDC transfers to the wallet that paid for nothing: nobody sent their hash."""
    from gateway.cli import session as till  # noqa: PLC0415
    from gateway.settings import load_settings  # noqa: PLC0415

    async def look() -> list[Any]:
        async with till.open_session(load_settings()) as opened:
            return await till.unclaimed_transfers(opened, days=days, hours=hours)

    rows = [
        {
            "transaction": found.tx_hash,
            "log": found.log_index,
            "block": found.block_number,
            "from": found.sender,
            "amount": f"{found.amount_units / 10**6:g}",
        }
        for found in asyncio.run(look())
    ]
    if not rows and not as_json:
        click.echo("Every transfer paid for something.")
        return
    print_rows(rows, as_json=as_json, wide=wide)
