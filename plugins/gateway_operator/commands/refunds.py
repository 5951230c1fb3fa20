"""The command `gateway refunds`."""

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from gateway.cli.terminal import FiniteRange, ListGroup, json_option, one_sentence, wide_option
from gateway.domain import PaymentState, RefundCase
from gateway.settings import load_settings
from gateway_operator.actions.refunds import approve as approve_refunds
from gateway_operator.actions.refunds import choice_of
from gateway_operator.actions.refunds import reject as reject_refunds
from gateway_operator.actions.refunds import take_back as take_back_approval
from gateway_operator.commands.session import open_session, shell_actor
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.refunds import (
    OPEN,
    find_payable,
    pay_refunds,
    preview_refunds,
    waiting_reason,
)
from gateway_operator.desk.system import refund_key_problem
from gateway_operator.tables import print_rows

_TASKS = click.argument("task_ids", nargs=-1, metavar="[TASK_ID]...")


def _parse_address(_: Any, __: Any, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"0x[0-9a-fA-F]{40}", value):
        raise click.BadParameter("an address is 0x followed by 40 hexadecimal digits")
    return value


@click.group(cls=ListGroup, invoke_without_command=True)
@json_option
@wide_option
@click.pass_context
@one_sentence
def refunds(context: click.Context, *, as_json: bool, wide: bool) -> None:
    """List, approve, reject and pay refunds for failed tasks.

    Without a command, the open ones are listed.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_refunds, as_json=as_json, wide=wide)


@refunds.command("list")
@click.option("--all", "everything", is_flag=True, help="Include paid refunds.")
@json_option
@wide_option
@one_sentence
def list_refunds(*, everything: bool, as_json: bool, wide: bool) -> None:
    """List refunds: recipient, amount, reason and problem."""

    async def find() -> list[RefundCase]:
        async with open_session(load_settings()) as desk:
            return await desk.store.refunds.cases(*(() if everything else OPEN))

    cases = asyncio.run(find())
    if not cases and not as_json:
        click.echo("Nothing is owed.")
        return
    print_rows([_make_row(case) for case in cases], as_json=as_json, wide=wide)


def _make_row(case: RefundCase, **more: Any) -> dict[str, Any]:
    return {
        "task": case.task_id,
        "amount": f"{case.amount_units / 10**6:g}",
        "to": "" if case.needs_address else case.recipient,
        "state": str(case.payment.state),
        "decision": str(case.decision or ""),
        "why": case.reason,
        "problem": case.problem or waiting_reason(case),
        "transaction": case.tx_hash or "",
        **more,
    }


@refunds.command()
@_TASKS
@click.option("--all", "everything", is_flag=True, help="Every refund that is due.")
@click.option(
    "--to",
    "recipient",
    callback=_parse_address,
    help="Pay this address instead of the payer's, or if none is known.",
)
@click.option("--note", "--reason", "note", default="", help="The reason, for the audit log.")
@one_sentence
def approve(*, task_ids: Sequence[str], everything: bool, recipient: str | None, note: str) -> None:
    """Approve refunds. The running gateway or `gateway refunds pay` sends them."""
    if everything and (task_ids or recipient is not None):
        raise click.UsageError(
            "--all approves every refund that is due. Use it without tasks and --to."
        )
    if not task_ids and not everything:
        raise click.UsageError("Name the tasks, or use --all; `gateway refunds list` shows them.")
    decided, left, problem = asyncio.run(_approve(task_ids, recipient, note))
    click.echo(f"Approved: {decided}.")
    for task_id in left:
        click.echo(
            f"Not approved: no address is known for {task_id}. Use `gateway refunds approve "
            f"{task_id} --to ADDRESS`.",
            err=True,
        )
    if problem:
        click.echo(f"Nothing is sent yet: {problem}", err=True)


@refunds.command()
@_TASKS
@click.option("--note", "--reason", "note", required=True, help="The reason, for the audit log.")
@one_sentence
def reject(*, task_ids: Sequence[str], note: str) -> None:
    """Reject refunds. A later approval overrides the rejection."""
    if not task_ids:
        raise click.UsageError("Name the tasks; `gateway refunds list` shows them.")
    decided = asyncio.run(_reject(task_ids, note))
    click.echo(f"Rejected: {decided}.")


@refunds.command("take-back")
@click.argument("task_id")
@click.option("--note", "--reason", "note", default="", help="The reason, for the audit log.")
@one_sentence
def take_back(*, task_id: str, note: str) -> None:
    """Withdraw an approval whose refund is not signed yet."""

    async def act() -> None:
        async with open_session(load_settings()) as desk:
            await take_back_approval(desk, shell_actor(), task_id, reason=note)

    asyncio.run(act())
    click.echo("Taken back.")


async def _approve(
    task_ids: Sequence[str], recipient: str | None, note: str
) -> tuple[int, Sequence[str], str | None]:
    """Approve these tasks' refunds, or every due refund with an address.

    Returns their number, the tasks without an address, and why none can be sent now.
    """
    left: list[str] = []
    async with open_session(load_settings()) as desk:
        if not task_ids:
            due = await desk.store.refunds.cases(PaymentState.REFUND_DUE)
            task_ids = [case.task_id for case in due if not case.needs_address]
            left = [case.task_id for case in due if case.needs_address]
        done = await _approve_named(desk, task_ids, recipient=recipient, note=note)
        return len(done), left, await refund_key_problem(desk) if done else None


async def _approve_named(
    desk: Desk, task_ids: Sequence[str], *, recipient: str | None = None, note: str = ""
) -> Sequence[RefundCase]:
    """Approve refunds as they are now. Shell access replaces the fresh password."""
    choices = [choice_of(case) for case in await find_payable(desk, task_ids)] if task_ids else []
    if not choices:
        return []
    return await approve_refunds(
        desk,
        shell_actor(),
        choices,
        reason=note,
        to=recipient,
        accepts_unproven=True,
        is_fresh=True,
    )


async def _reject(task_ids: Sequence[str], note: str) -> int:
    async with open_session(load_settings()) as desk:
        return len(await reject_refunds(desk, shell_actor(), task_ids, reason=note))


@refunds.command()
@_TASKS
@click.option("--dry-run", is_flag=True, help="Only show what would be sent.")
@click.option(
    "--wait",
    "wait_s",
    default=60.0,
    show_default=True,
    type=FiniteRange(0),
    help="Maximum seconds to wait.",
)
@json_option
@wide_option
@one_sentence
def pay(
    *, task_ids: Sequence[str], dry_run: bool, wait_s: float, as_json: bool, wide: bool
) -> None:
    """Send approved refunds now. With tasks, approve their refunds and send only those."""
    rows = asyncio.run(_preview(task_ids) if dry_run else _pay(task_ids, wait_s))
    if not rows and not as_json:
        click.echo("Nothing is approved. `gateway refunds list` shows what is owed.")
        return
    print_rows(rows, as_json=as_json, wide=wide)
    is_done = (row["state"] == "refunded" or (dry_run and not row["problem"]) for row in rows)
    sys.exit(0 if all(is_done) else 1)


async def _preview(task_ids: Sequence[str]) -> list[dict[str, Any]]:
    async with open_session(load_settings()) as desk:
        shown = await preview_refunds(desk, await find_payable(desk, task_ids))
    return [_make_row(case, problem=problem or "") for case, problem in shown]


async def _pay(task_ids: Sequence[str], wait_s: float) -> list[dict[str, Any]]:
    async with open_session(load_settings()) as desk:
        # Raises without a refund key, so that nothing is approved that cannot be sent.
        desk.sender()
        cases = await find_payable(desk, task_ids)
        moving = PaymentState.REFUNDING
        new = [case.task_id for case in cases if case.payment.state is not moving]
        await _approve_named(desk, new if task_ids else ())
        return [_make_row(case) for case in await pay_refunds(desk, cases, wait_s=wait_s)]
