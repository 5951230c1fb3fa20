"""Compares the books with the chain, to the unit.

Transfers to the wallet are sales or unused. Transfers of the refund key are refunds or the
operator's own.
"""

from collections import Counter
from collections.abc import Sequence

import attrs

from gateway.chain.block_times import first_block_since
from gateway.domain import MinedTransfer
from gateway_operator.books.span import Span
from gateway_operator.desk.desk import Desk
from gateway_operator.sql import ledger
from gateway_operator.sql.ledger import Booked
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

    @property
    def is_exact(self) -> bool:
        """Whether everything in the books is on the chain."""
        sides = [side for side in (self.sales, self.refunds) if side is not None]
        return not any(side.missing for side in sides)


async def reconcile(desk: Desk, span: Span) -> Reconciliation:
    """Compare a period, up to the newest safe block.

    Raises `ChainUnavailable`.
    """
    head = await desk.chain.safe_head()
    first = await first_block_since(desk.chain, span.since, head=head)
    last = await first_block_since(desk.chain, span.until, head=head) - 1
    sales = await _compare_sales(desk, span, first, last)
    refunds = None
    if desk.refunds is not None:
        refunds = await _compare_refunds(desk, desk.refunds.address, span, first, last)
    return Reconciliation(first=first, last=last, sales=sales, refunds=refunds)


async def _compare_sales(desk: Desk, span: Span, first: int, last: int) -> Side:
    wallet = desk.settings.wallet_key
    transfers = await _transfers(desk, first, last, recipient=wallet)
    booked = await desk.store.sum(ledger.booked_sales, span.since, span.until, first, last)
    return await _compare(desk, transfers, booked, first, last)


async def _compare_refunds(desk: Desk, key: str, span: Span, first: int, last: int) -> Side:
    until = span.until + _SEEN_AFTER_S
    booked = await desk.store.sum(ledger.booked_refunds, span.since, until)
    # Keys are rotated, so include earlier ones.
    senders = await desk.store.sum(ledger.refund_senders, span.since, until)
    transfers: list[MinedTransfer] = []
    for sender in sorted({key.lower(), *senders}):
        transfers += await _transfers(desk, first, last, sender=sender)
    return await _compare(desk, transfers, booked, first, last)


async def _transfers(
    desk: Desk, first: int, last: int, *, recipient: str | None = None, sender: str | None = None
) -> list[MinedTransfer]:
    pieces = transfer_pieces(desk.chain, first, last, recipient=recipient, sender=sender)
    return [transfer async for _, transfers in pieces for transfer in transfers]


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
