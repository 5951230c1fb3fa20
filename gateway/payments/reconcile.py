"""Closes a payment of unknown outcome, by facts of the chain only.

Three facts close a payment, all read at one pinned block:

- settled: `AuthorizationUsed(from, nonce)` directly followed by a transfer to the wallet of at
  least the price, in any transaction, whoever sent it;
- released: the nonce is unused at a block whose time is at or after `validBefore`;
- released: the nonce was used or cancelled without such a transfer.

A spent nonce alone proves nothing: cancelling spends it, and the payer may have paid another
recipient with it. A missing log proves nothing either while the endpoint may lag behind.
"""

from collections.abc import Callable

import attrs

from gateway.contracts import Chain, Clock
from gateway.domain import Authorization, Block, Payment, Receipt, Transfer
from gateway.domain.eip3009 import (
    AUTHORIZATION_CANCELED_TOPIC,
    AUTHORIZATION_STATE,
    AUTHORIZATION_USED_TOPIC,
    Network,
    topic,
    transfers_to,
    word,
)
from gateway.domain.records import LOG_LAG_S
from gateway.errors import ChainUnavailable
from gateway.settings import Settings
from gateway.store import SqlStore

# Blocks in one query. Public endpoints refuse more.
_RANGE = 2_000

# The event of an authorization that expires must be within this many blocks (33 hours).
SPAN = 60_000


class EventNotMined(ChainUnavailable):
    """A log shows an event of a nonce, but no canonical block has its transaction yet."""


@attrs.frozen(kw_only=True)
class NonceEvent:
    """The event that spent a nonce, in a canonical block."""

    receipt: Receipt
    was_used: bool
    """False: it was cancelled."""


async def is_spent(chain: Chain, signed: Authorization, block: Block) -> bool:
    """Return whether the nonce is used or cancelled at a block."""
    call = AUTHORIZATION_STATE + word(signed.sender) + word(signed.nonce)
    return bool(await chain.call_uint(call, at=block))


async def find_event(
    chain: Chain,
    signed: Authorization,
    network: Network,
    *,
    from_block: int,
    known: Block,
    span: int | None = None,
) -> NonceEvent | None:
    """Return the event that spent a nonce, or None if no log shows it.

    The search ends at the block `known`, and covers at most `span` blocks. Pass no `span` for an
    authorization that does not expire. A log is only a hint: the event is read from the
    transaction's receipt. Raises `EventNotMined` if the receipt does not contain it.
    """
    last = known.number if span is None else min(known.number, from_block + span)
    for first in range(from_block, last + 1, _RANGE):
        found = await chain.authorization_logs(
            signed.sender,
            signed.nonce,
            from_block=first,
            to_block=min(first + _RANGE - 1, last),
            known=known,
        )
        if found:
            tx_hash, _ = found[0]
            receipt = await chain.receipt(tx_hash)
            event = None if receipt is None else _read_event(receipt, signed, network)
            if event is None:
                raise EventNotMined("A log shows an event that no canonical block holds.")
            return event
    return None


def _read_event(receipt: Receipt, signed: Authorization, network: Network) -> NonceEvent | None:
    """Return the event by which this transaction spent the nonce, or None."""
    nonce = (topic(signed.sender), signed.nonce)
    for log in receipt.logs:
        if log.address == network.token and log.topics[1:] == nonce:
            if log.topics[0] == AUTHORIZATION_USED_TOPIC:
                return NonceEvent(receipt=receipt, was_used=True)
            if log.topics[0] == AUTHORIZATION_CANCELED_TOPIC:
                return NonceEvent(receipt=receipt, was_used=False)
    return None


def find_transfer(signed: Authorization, receipt: Receipt, network: Network) -> Transfer | None:
    """Return the transfer to the recipient that used this authorization, or None.

    A reverted transaction contains no transfer.
    """
    key = network.authorization_key(signed.sender, signed.nonce)
    transfers = transfers_to(signed.recipient, receipt, network) if receipt.succeeded else []
    return next((found for found in transfers if found.authorization_key == key), None)


# Each search repeats this many blocks: logs lag, and the newest blocks may be reorganised.
_OVERLAP_BLOCKS = 100


class Reconciler:
    """Settles or releases payments by the outcome of their authorizations."""

    def __init__(
        self,
        store: SqlStore,
        chain: Chain,
        settings: Settings,
        now: Clock,
        on_dropped: Callable[[str], None],
        *,
        overlap_blocks: int = _OVERLAP_BLOCKS,
    ) -> None:
        self._store = store
        self._chain = chain
        self._settings = settings
        self._now = now
        # Called with the task id of each released payment.
        self._on_dropped = on_dropped
        self.overlap_blocks = overlap_blocks
        # By payment id: the block up to which the search found no event.
        self._searched: dict[int, int] = {}

    async def close_by_receipt(self, payment: Payment, tx_hash: str) -> bool:
        """Return whether this transaction settled the payment. A missing receipt proves nothing.

        Raises `ChainUnavailable`.
        """
        receipt = await self._chain.receipt(tx_hash)
        return receipt is not None and await self._settle_by(payment, receipt)

    async def close(self, payment: Payment) -> bool:
        """Return whether the payment is closed now. Raises `ChainUnavailable`."""
        signed = _authorization_of(payment)
        block = await self._chain.head()
        if await is_spent(self._chain, signed, block):
            return await self._close_spent(payment, signed, block)
        if block.timestamp < signed.valid_before:
            return False
        await self._release(payment)
        return True

    async def _release(self, payment: Payment) -> None:
        # Find the task first: nothing may fail after the release.
        signed = _authorization_of(payment)
        task = await self._store.find_claim(
            self._settings.chain.authorization_key(signed.sender, signed.nonce)
        )
        await self._store.release(payment.id, now=self._now())
        self._searched.pop(payment.id, None)
        if task is not None:
            self._on_dropped(task.id)

    async def _close_spent(self, payment: Payment, signed: Authorization, block: Block) -> bool:
        """Close by the event that spent the nonce: settle if it paid us, else release.

        Each search covers only new blocks. The last one covers all blocks, because it releases the
        payment if it finds no event.
        """
        is_last = block.timestamp >= signed.valid_before + LOG_LAG_S
        start = payment.search_from_block
        if not is_last:
            start = max(start, self._searched.get(payment.id, 0) - self.overlap_blocks)
        event = await find_event(
            self._chain, signed, self._settings.chain, from_block=start, known=block, span=SPAN
        )
        if event is not None and await self._settle_by(payment, event.receipt):
            return True
        if event is None and not is_last:
            self._searched[payment.id] = block.number
            return False
        await self._release(payment)
        return True

    async def _settle_by(self, payment: Payment, receipt: Receipt) -> bool:
        """Settle if the receipt contains this authorization's transfer of at least the price."""
        transfer = find_transfer(_authorization_of(payment), receipt, self._settings.chain)
        if transfer is None or transfer.amount_units < payment.price_units:
            return False
        await self._store.settle(payment.id, transfer, now=self._now())
        self._searched.pop(payment.id, None)
        return True


def _authorization_of(payment: Payment) -> Authorization:
    if payment.authorization is None:
        raise ValueError("a direct payment is settled from the start")
    return payment.authorization
