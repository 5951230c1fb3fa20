"""The books as rows of text, for spreadsheets and programs.

CSV follows RFC 4180 with a dot before decimals. A cell that a spreadsheet would read as a formula
gets a leading apostrophe, unless it is a number.
"""

import csv
import io
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.books.span import DAY_S, Span
from gateway_operator.books.sums import Books, BooksLine
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.references import shorten_ids
from gateway_operator.sql import ledger
from gateway_operator.sql.ledger import LedgerRow

# Limits the rows in memory.
_PIECE_S = DAY_S / 4
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
SALE_COLUMNS = (
    "day",
    "time",
    "kind",
    "task",
    "endpoint",
    "provider",
    "flow",
    "payer",
    "tx",
    "block",
    "usdc",
    "eth",
    "usd",
    "cost_source",
    "state",
    "related_tx",
    "claim",
    "receipt",
)
Row = dict[str, str]


async def read_rows(
    desk: Desk, span: Span, eth_usd: Decimal | None = None
) -> AsyncIterator[list[Row]]:
    """Yield the rows of a period in chunks, in the order of time.

    `eth_usd`, the price of one ETH in dollars, adds a column of the same name to rows of gas.
    """
    since = span.since
    while since < span.until:
        until = min(since + _PIECE_S, span.until)
        found = await desk.store.sum(ledger.rows, since, until)
        yield [_row(one, eth_usd) for one in found]
        since = until


def _row(one: LedgerRow, eth_usd: Decimal | None) -> Row:
    moment = datetime.fromtimestamp(one.at, UTC)
    row = {
        "day": moment.date().isoformat(),
        "time": moment.strftime("%H:%M:%S"),
        "kind": one.kind,
        "task": shorten_ids(one.task_id),
        "endpoint": one.slug,
        "provider": one.provider or "",
        "flow": one.flow,
        "payer": one.payer,
        "tx": one.tx_hash or "",
        "block": "" if one.block is None else str(one.block),
        "usdc": millionths(one.units),
        "eth": ether(one.wei),
        "usd": millionths(one.cost_micros),
        "cost_source": one.cost_source or "",
        "state": one.state,
        "related_tx": one.related_tx or "",
        "claim": one.claim or "",
        "receipt": one.receipt or "",
    }
    if eth_usd is not None:
        row["eth_usd"] = in_dollars(one.wei, eth_usd)
    return row


def line_rows(books: Books, by: str, eth_usd: Decimal | None = None) -> list[Row]:
    """Return the lines of the books as rows, without the total."""
    return [line_row(line, by, eth_usd) for line in books.lines]


def line_row(line: BooksLine, by: str, eth_usd: Decimal | None = None) -> Row:
    """Return one line; its first column is `by`: `day` or `endpoint`."""
    row = {
        by: line.name,
        "sales": str(line.sales),
        "completed": str(line.completed),
        "failed": str(line.failed),
        "taken_usdc": millionths(line.taken_units),
        "refunded_usdc": millionths(line.refunded_units),
        "owed_usdc_at_end": millionths(line.owed_units_at_end),
        "vendor_usd": millionths(line.vendor_micros),
        "cost_known": str(line.cost_known),
        "gas_eth": ether(line.gas_wei),
        "gas_unknown": str(line.gas_unknown),
        "margin_usdc": millionths(line.margin_units),
    }
    if by == "endpoint":
        del row["owed_usdc_at_end"]
    if eth_usd is not None:
        row["gas_usd"] = in_dollars(line.gas_wei, eth_usd)
    return row


def write_csv(rows: Iterable[Mapping[str, str]], columns: Iterable[str], *, head: bool) -> str:
    """Return rows as CSV, with a header row if `head`."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    columns = tuple(columns)
    if head:
        writer.writerow(columns)
    writer.writerows([quote(row[name]) for name in columns] for row in rows)
    return text.getvalue()


def quote(cell: str) -> str:
    """Return a cell that no spreadsheet reads as a formula."""
    if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def millionths(amount: int | None) -> str:
    """Return an amount of 10⁻⁶ as a decimal without an exponent; empty for None."""
    return "" if amount is None else _plain(Decimal(amount).scaleb(-6))


def ether(wei: int | None) -> str:
    """Return wei as ETH without an exponent; empty for None."""
    return "" if wei is None else _plain(Decimal(wei).scaleb(-18))


def in_dollars(wei: int | None, eth_usd: Decimal) -> str:
    """Return the value of wei, to a millionth of a dollar."""
    if wei is None:
        return ""
    return _plain((Decimal(wei).scaleb(-18) * eth_usd).quantize(Decimal("0.000001")))


def _plain(amount: Any) -> str:
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


async def note_export(desk: Desk, actor: Actor, span: Span, by: str) -> None:
    """Record the export in the audit log, because rows of sales name payers."""
    action = NewAction(
        actor=actor,
        at=desk.now(),
        action="books.export",
        subject=by,
        after={"from": span.first.isoformat(), "to": span.last.isoformat()},
    )
    await desk.records.note(action)
