"""Compares the books with the chain, to the unit.

Every transfer from or to an address of the gateway is explained by a record, or it is listed.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Literal

import attrs

from gateway.chain.block_times import first_block_since
from gateway.domain import MinedTransfer
from gateway_operator.books.span import Span
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.wording import usdc
from gateway_operator.movements import with_earlier_keys
from gateway_operator.sql import ledger, seen_transfers
from gateway_operator.sql.ledger import Booked
from gateway_operator.sql.movements import EXPLAINED, Movement, explain
from gateway_operator.sql.seen_transfers import SeenTransfer
from gateway_operator.transfer_search import transfer_pieces

# A refund is booked when it is seen, after its block.
_SEEN_AFTER_S = 7 * 86_400.0


@attrs.frozen(kw_only=True)
class Side:
    """One direction of transfers, in 10⁻⁶ USDC."""

    transfers: int
    transfers_units: int
    booked: int
    booked_units: int

    # On the chain, not in the books.
    unbooked: Sequence[MinedTransfer]

    # In the books, not on the chain.
    missing: Sequence[Booked]

    @property
    def unbooked_units(self) -> int:
        """The sum of transfers that are only on the chain."""
        return sum(one.amount_units for one in self.unbooked)

    @property
    def difference_units(self) -> int:
        """Transfers less booked less unbooked: 0, or minus the missing amount."""
        return self.transfers_units - self.booked_units - self.unbooked_units


@attrs.frozen(kw_only=True)
class Reconciliation:
    """The comparison of the blocks `first` to `last`."""

    first: int
    last: int

    # Unbooked ones are unused.
    sales: Side

    # Of current and earlier refund keys; None without a key.
    refunds: Side | None

    # Every transfer from or to the gateway's addresses that no record explains.
    open: Sequence[Movement]

    # Those that only a mark explains, each with the mark.
    marked: Sequence[tuple[Movement, SeenTransfer]]

    @property
    def missing(self) -> Sequence[Booked]:
        """The entries of the books that are not on the chain."""
        sides = [side for side in (self.sales, self.refunds) if side is not None]
        return [one for side in sides for one in side.missing]

    @property
    def unbooked(self) -> Sequence[Movement]:
        """Transfers that left an address without a record: the operator's own, or a theft."""
        return [one for one in self.open if one.kind == "unbooked"]

    @property
    def level(self) -> Literal["ok", "warn", "bad"]:
        """Whether books and chain agree; `warn`: money came for nothing, or was forgotten."""
        if self.missing or self.unbooked:
            return "bad"
        return "warn" if any(one.kind != "top_up" for one in self.open) else "ok"

    @property
    def outcome(self) -> str:
        """The result as a sentence."""
        problems = []
        if self.missing:
            problems.append("some entries of the books are not on the chain")
        if self.unbooked:
            units = sum(one.transfer.amount_units for one in self.unbooked)
            problems.append(f"{usdc(units)} USDC left the gateway's addresses without a record")
        if problems:
            return f"{' and '.join(problems)}."
        rest = [one.transfer.amount_units for one in self.open if one.kind != "top_up"]
        if rest:
            return (
                f"every entry of the books is on the chain, but {usdc(sum(rest))} USDC moved for "
                "no sale or refund."
            )
        return "the books and the chain agree to the unit."


async def reconcile(desk: Desk, span: Span) -> Reconciliation:
    """Compare a period, up to the newest safe block.

    Raises `ChainUnavailable`.
    """
    head = await desk.chain.safe_head()
    first = await first_block_since(desk.chain, span.since, head=head)
    last = await first_block_since(desk.chain, span.until, head=head) - 1
    roles = await with_earlier_keys(desk.store, desk.roles())
    transfers = await _transfers(desk, first, last, roles)
    born_at = float(await desk.store.known_meta("born_at") or 0)
    born_block = await first_block_since(desk.chain, max(born_at, span.since), head=head)
    found = await desk.store.sum(partial(explain, first_block=born_block), transfers, roles)
    sales = await _compare_sales(desk, transfers, span, first, last)
    refunds = None
    if desk.refunds is not None:
        keys = {address for address, role in roles.items() if role == "refund"}
        refunds = await _compare_refunds(desk, keys, transfers, span, first, last)
    return Reconciliation(
        first=first,
        last=last,
        sales=sales,
        refunds=refunds,
        open=[one for one in found if one.kind not in EXPLAINED],
        marked=await _find_marks(desk, [one for one in found if one.kind == "seen"]),
    )


async def _find_marks(desk: Desk, found: Sequence[Movement]) -> list[tuple[Movement, SeenTransfer]]:
    hashes = {one.transfer.tx_hash for one in found}
    marks = await desk.store.sum(seen_transfers.find, hashes) if hashes else {}
    return [(one, marks[one.place]) for one in found if one.place in marks]


async def _compare_sales(
    desk: Desk, transfers: Sequence[MinedTransfer], span: Span, first: int, last: int
) -> Side:
    wallet = desk.settings.wallet_key
    transfers = [one for one in transfers if one.recipient == wallet]
    booked = await desk.store.sum(ledger.booked_sales, span.since, span.until, first, last)
    return await _compare(desk, transfers, booked, first, last)


async def _compare_refunds(
    desk: Desk,
    keys: Collection[str],
    transfers: Sequence[MinedTransfer],
    span: Span,
    first: int,
    last: int,
) -> Side:
    until = span.until + _SEEN_AFTER_S
    booked = await desk.store.sum(ledger.booked_refunds, span.since, until)
    return await _compare(
        desk, [one for one in transfers if one.sender in keys], booked, first, last
    )


async def _transfers(
    desk: Desk, first: int, last: int, roles: Mapping[str, str]
) -> list[MinedTransfer]:
    """Return every transfer from or to the gateway's addresses, once."""
    found: dict[tuple[str, int], MinedTransfer] = {}
    for recipient, sender in ((list(roles), None), (None, list(roles))):
        pieces = transfer_pieces(desk.chain, first, last, recipient=recipient, sender=sender)
        async for _, transfers in pieces:
            found |= {(one.tx_hash, one.log_index): one for one in transfers}
    return list(found.values())


async def _compare(
    desk: Desk,
    transfers: Sequence[MinedTransfer],
    booked: Sequence[Booked],
    first: int,
    last: int,
) -> Side:
    """Match by transaction and amount: a reorganisation can change the log index."""
    open_transfers = Counter((one.tx_hash, one.amount_units) for one in transfers)
    matched, missing = [], []
    for one in booked:
        key = (one.tx_hash, one.units)
        if open_transfers[key]:
            open_transfers[key] -= 1
            matched.append(one)
        elif await _belongs_here(desk, one, first, last):
            missing.append(one)
    unbooked = []
    for transfer in transfers:
        key = (transfer.tx_hash, transfer.amount_units)
        if open_transfers[key]:
            open_transfers[key] -= 1
            unbooked.append(transfer)
    all_booked = [*matched, *missing]
    return Side(
        transfers=len(transfers),
        transfers_units=sum(one.amount_units for one in transfers),
        booked=len(all_booked),
        booked_units=sum(one.units for one in all_booked),
        unbooked=unbooked,
        missing=missing,
    )


async def _belongs_here(desk: Desk, one: Booked, first: int, last: int) -> bool:
    """Whether the booked transfer should have been in these blocks.

    If its block is not known, the chain is asked; one that the chain does not know counts as
    missing.
    """
    block = one.block
    if block is None:
        receipt = await desk.chain.receipt(one.tx_hash)
        block = None if receipt is None else receipt.block_number
    return block is None or first <= block <= last
