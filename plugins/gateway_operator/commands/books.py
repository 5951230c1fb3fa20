"""The command `gateway books`."""

import asyncio
import time
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from gateway.cli.terminal import json_option, one_sentence, wide_option
from gateway.errors import SettingsError, WrongValue
from gateway.settings import load_settings
from gateway_operator.books.export import (
    SALE_COLUMNS,
    Row,
    line_row,
    line_rows,
    note_export,
    read_rows,
    write_csv,
)
from gateway_operator.books.reconcile import Reconciliation, Side, reconcile
from gateway_operator.books.span import Span, read_span
from gateway_operator.books.sums import Books, read_days, read_endpoints
from gateway_operator.commands.session import open_session, shell_actor
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.movement_conditions import describe_kind, describe_mark
from gateway_operator.tables import print_rows

_SHOWN = "table"


@click.command()
@click.option("--from", "first", metavar="DAY", help="First day, as 2026-11-01 (UTC).")
@click.option("--to", "last", metavar="DAY", help="Last day.  [default: today]")
@click.option(
    "--by",
    type=click.Choice(["day", "endpoint", "sale"]),
    default="day",
    show_default=True,
    help="What each line is; sale: one for each sale, refund, transaction and result.",
)
@click.option(
    "--format",
    "shape",
    type=click.Choice([_SHOWN, "csv", "json"]),
    default=_SHOWN,
    show_default=True,
)
@json_option
@click.option("--eth-usd", metavar="PRICE", help="Dollars for one ETH: adds the value of gas.")
@click.option("--reconcile", "compares", is_flag=True, help="Compare with the chain instead.")
@wide_option
@one_sentence
def books(
    *,
    first: str | None,
    last: str | None,
    by: str,
    shape: str,
    as_json: bool,
    eth_usd: str | None,
    compares: bool,
    wide: bool,
) -> None:
    """Print income, refunds and costs.

    By default, of the last 30 days.
    """
    span, shape = _read_span(first, last), "json" if as_json else shape
    price = _read_price(eth_usd)
    if compares:
        asyncio.run(_compare(span, is_json=shape == "json", wide=wide))
    elif by == "sale":
        asyncio.run(_print_sales(span, price, shape, wide=wide))
    else:
        asyncio.run(_print_lines(span, by, price, shape, wide=wide))


def _read_span(first: str | None, last: str | None) -> Span:
    try:
        return read_span(first, last, time.time())
    except WrongValue as error:
        raise SettingsError(str(error)) from None


def _read_price(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal(0)
    if not price.is_finite() or price <= 0:
        raise SettingsError("--eth-usd must be dollars for one ETH, such as 3250.50.")
    return price


async def _print_lines(
    span: Span, by: str, price: Decimal | None, shape: str, *, wide: bool
) -> None:
    async with open_session(load_settings()) as desk:
        found = await (read_days if by == "day" else read_endpoints)(desk, span)
        if shape == "csv":
            await note_export(desk, shell_actor(), span, by)
    rows = line_rows(found, by, price)
    if shape == "csv":
        columns = list(line_row(found.total, by, price))
        click.echo(write_csv(rows, columns, head=True), nl=False)
    elif shape == "json":
        print_rows(rows, as_json=True)
    else:
        _print_table(found, by, price, wide=wide)


def _print_table(found: Books, by: str, price: Decimal | None, *, wide: bool) -> None:
    rows = [
        line_row(line, by, price)
        for line in found.lines
        if line.sales or line.completed or line.refunded_units or line.gas_wei
    ]
    if not rows:
        click.echo(f"No sales from {found.span.first} to {found.span.last}.")
        return
    print_rows([*rows, line_row(found.total, by, price)], as_json=False, wide=wide, stacked=_stack)
    if found.total.margin_units is None:
        unknown = found.total.completed - found.total.cost_known
        click.echo(f"The margin is not known: {unknown:,} results have no known cost.")


def _stack(row: dict[str, Any]) -> dict[str, Any]:
    """Use fewer columns on a narrow terminal."""
    name = next(iter(row))
    owed = [f"owed {row['owed_usdc_at_end']}"] if "owed_usdc_at_end" in row else []
    margin = row["margin_usdc"] or "unknown"
    return {
        name: row[name],
        "sales": f"{row['sales']} sold\n{row['completed']} made\n{row['failed']} failed",
        "USDC": "\n".join(
            [f"taken {row['taken_usdc']}", f"refunded {row['refunded_usdc']}", *owed]
        ),
        "costs": f"vendors {row['vendor_usd']} USD\ngas {row['gas_eth']} ETH",
        "margin": margin,
    }


async def _print_sales(span: Span, price: Decimal | None, shape: str, *, wide: bool) -> None:
    columns = [*SALE_COLUMNS, *(["eth_usd"] if price is not None else [])]
    everything: list[Row] = []
    async with open_session(load_settings()) as desk:
        if shape == "csv":
            await note_export(desk, shell_actor(), span, "sale")
            click.echo(write_csv([], columns, head=True), nl=False)
        async for rows in read_rows(desk, span, price):
            if shape == "csv":
                click.echo(write_csv(rows, columns, head=False), nl=False)
            else:
                everything += rows
    if shape != "csv" and (everything or shape == "json"):
        print_rows(everything, as_json=shape == "json", wide=wide, stacked=_stack_row)
    elif shape != "csv":
        click.echo(f"No sales from {span.first} to {span.last}.")


def _stack_row(row: dict[str, Any]) -> dict[str, Any]:
    """Use fewer columns on a narrow terminal."""
    amounts = ((row["usdc"], "USDC"), (row["eth"], "ETH"), (row["usd"], "USD"))
    amount = [f"{value} {unit}" for value, unit in amounts if value]
    return {
        "when": f"{row['day']}\n{row['time']}",
        "what": f"{row['kind']}, {row['state']}\n{row['endpoint']}",
        "task, payer": "\n".join(
            filter(None, [row["task"], row["payer"], row["claim"], row["receipt"]])
        ),
        "amount": "\n".join(amount) or "unknown",
    }


# -- the chain


async def _compare(span: Span, *, is_json: bool, wide: bool) -> None:
    async with open_session(load_settings()) as desk:
        found = await _reconcile(desk, span)
    sides = {"sales": found.sales, "refunds": found.refunds}
    rows = [_side_row(name, side) for name, side in sides.items() if side is not None]
    print_rows(rows, as_json=is_json, wide=wide)
    if not is_json:
        _print_findings(found)
    if found.level == "bad":
        raise SystemExit(1)


async def _reconcile(desk: Desk, span: Span) -> Reconciliation:
    click.echo("Reading the chain's transfers…", err=True)
    return await reconcile(desk, span)


def _side_row(name: str, side: Side) -> dict[str, Any]:
    return {
        "what": name,
        "transfers": side.transfers,
        "on chain": f"{side.transfers_units / 10**6:f}",
        "booked": f"{side.booked_units / 10**6:f}",
        "not booked": f"{side.unbooked_units / 10**6:f}",
        "difference": f"{side.difference_units / 10**6:f}",
    }


def _print_findings(found: Reconciliation) -> None:
    for one in found.open:
        sent = one.transfer
        click.echo(
            f"{describe_kind(one)}: {sent.amount_units / 10**6:g} USDC of {sent.sender} to "
            f"{sent.recipient}, transaction {sent.tx_hash}, log {sent.log_index}."
        )
    for one, mark in found.marked:
        click.echo(f"Explained by a mark: {describe_mark(one, mark)}.")
    for booked in found.missing:
        amount = f"{booked.units / 10**6:g} USDC, task {booked.task_id}"
        click.echo(f"In the books, but not on the chain: {amount}, {booked.tx_hash}.")
    click.echo(f"Blocks {found.first} to {found.last}: {found.outcome}")
    if found.unbooked:
        click.echo(
            "Was a transfer yours? `gateway transfers seen TRANSACTION LOG --reason TEXT` books it."
        )
