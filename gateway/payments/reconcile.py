"""Settles or releases payments of unknown outcome, by facts of the chain only.

Three facts close a payment, each read at one pinned block:

- settled: `AuthorizationUsed(from, nonce)`, directly followed by a transfer to the wallet of at
  least the price, in a transaction by any sender;
- released: the nonce is unused at a block whose time is `validBefore` or later;
- released: the nonce was used or cancelled without such a transfer.

A spent nonce alone proves nothing: it may have been cancelled, or paid another recipient. A missing
log proves nothing while the endpoint may lag.
"""

import asyncio
from collections.abc import Callable

import attrs

from gateway.chain.authorization_checks import SPENT
from gateway.contracts import Chain, Clock, Quote
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
from gateway.errors import ChainUnavailable, ExecutionError, PaymentRequired
from gateway.settings import Settings
from gateway.store import SqlStore

# The most blocks in one log query. Public endpoints refuse more.
_RANGE = 2_000

# The most blocks searched for the event of an authorization that expires (33 hours).
SPAN = 60_000


class EventNotMined(ChainUnavailable):
    """A log shows the nonce's event, but no canonical block contains its transaction yet."""


@attrs.frozen(kw_only=True)
class NonceEvent:
    """The event that spent a nonce, in a canonical block."""

    receipt: Receipt
    was_used: bool
    """False: it was cancelled."""


async def is_spent(chain: Chain, signed: Authorization, block: Block) -> bool:
    """Whether the nonce is used or cancelled at a block."""
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

    Searches up to the block `known`, and at most `span` blocks; pass no `span` for an authorization
    that does not expire. The log is only a hint: the event comes from the transaction's receipt.
    Raises `EventNotMined` if the receipt does not contain it, and `ChainUnavailable`.
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

    Ignores reverted transactions.
    """
    key = network.authorization_key(signed.sender, signed.nonce)
    transfers = transfers_to(signed.recipient, receipt, network) if receipt.succeeded else []
    return next((found for found in transfers if found.authorization_key == key), None)


# Each search covers this many old blocks again: logs lag, and new blocks may be reorganised.
_OVERLAP_BLOCKS = 100


@attrs.define(eq=False, slots=False)
class Reconciler:
    """Closes payments by the outcome of their authorizations."""

    _store: SqlStore
    _chain: Chain
    _settings: Settings
    _now: Clock
    # Called with the released payment's task id.
    _on_dropped: Callable[[str], None]
    overlap_blocks: int = attrs.field(default=_OVERLAP_BLOCKS, kw_only=True)
    # The last block searched without finding an event, by payment id.
    _searched: dict[int, int] = attrs.field(factory=dict, init=False)

    async def close_by_receipt(self, payment: Payment, tx_hash: str) -> bool:
        """Settle the payment if this transaction paid it; return whether it did.

        A missing receipt proves nothing. Raises `ChainUnavailable`.
        """
        receipt = await self._chain.receipt(tx_hash)
        return receipt is not None and await self._settle_by(payment, receipt)

    async def close(self, payment: Payment) -> bool:
        """Close the payment if possible; return whether it is closed. Raises `ChainUnavailable`."""
        signed = _authorization_of(payment)
        block = await self._chain.head()
        if await is_spent(self._chain, signed, block):
            return await self._close_spent(payment, signed, block)
        if block.timestamp < signed.valid_before:
            return False
        await self._release(payment)
        return True

    async def _release(self, payment: Payment) -> None:
        # Find the task first, so that nothing can fail after the release.
        signed = _authorization_of(payment)
        task = await self._store.find_claim(
            self._settings.chain.authorization_key(signed.sender, signed.nonce)
        )
        await self._store.release(payment.id, now=self._now())
        self._searched.pop(payment.id, None)
        if task is not None:
            self._on_dropped(task.id)

    async def _close_spent(self, payment: Payment, signed: Authorization, block: Block) -> bool:
        """Find the event that spent the nonce; settle if it paid us, else release.

        Searches cover only new blocks, except for the last one: finding nothing, it releases the
        payment, so it covers all blocks.
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


# A reorganisation moves an event by no more than this many blocks.
_REORGANISED_BLOCKS = 100
_SEARCHES = 3
_UNKNOWN = (
    "This authorization was used, and the chain does not show yet for what. "
    "Nothing more was charged; send the same request again in a few seconds."
)


@attrs.frozen(kw_only=True)
class EventSearch:
    """Checks, before anything is written, whether a spent nonce has paid us.

    Any account can sign an authorization with a nonce that it spent or cancelled long ago. It is a
    payment only if the chain's logs show that it paid us.
    """

    # 67 minutes. An authorization is valid for 65 minutes at most, so a third party that submits it
    # before us does so within them.
    recent_blocks: int = 2_000
    # Every working endpoint has indexed the logs of blocks this old.
    indexed_blocks: int = 100
    # Seconds between two searches.
    pause_s: float = 1.0

    async def find_payment(
        self, chain: Chain, signed: Authorization, quote: Quote, cutoff: int
    ) -> int:
        """Return the block from which to search for the event that spent the nonce and paid us.

        Only blocks after `cutoff` count: the database may have lost the task of an earlier
        transfer. Takes about twenty RPC calls, or more if the endpoint limits log queries.

        Raises `PaymentRequired` if the nonce paid for nothing here, and `ExecutionError` if the
        chain does not show the event yet.
        """
        try:
            found = await self._search_recent(chain, signed, quote, cutoff)
        except ChainUnavailable as error:
            raise ExecutionError(_UNKNOWN, details=error.message) from error
        if found is None:
            raise ExecutionError(_UNKNOWN)
        return max(found - _REORGANISED_BLOCKS, cutoff + 1)

    async def _search_recent(
        self, chain: Chain, signed: Authorization, quote: Quote, cutoff: int
    ) -> int | None:
        """Return the block of the transfer that paid us, or None if no log shows the event yet."""
        head = await chain.head()
        first = max(head.number - self.recent_blocks + 1, cutoff + 1)
        for attempt in range(_SEARCHES):
            if attempt:
                await asyncio.sleep(self.pause_s)
                head = await chain.head()
            found = await _find_block(chain, signed, quote, head, first)
            if found is not None:
                return found
            before = await chain.block_at(max(head.number - self.indexed_blocks, cutoff, 0))
            if before.number < head.number and await is_spent(chain, signed, before):
                raise PaymentRequired(SPENT)
            # The nonce was spent after that block.
            first = max(first, before.number + 1)
        return None


async def _find_block(
    chain: Chain, signed: Authorization, quote: Quote, head: Block, first: int
) -> int | None:
    """Search the logs once. Returns and raises as `_search_recent` does."""
    try:
        event = await find_event(chain, signed, quote.network, from_block=first, known=head)
    except EventNotMined:
        return None
    if event is None:
        return None
    transfer = find_transfer(signed, event.receipt, quote.network)
    if transfer is None or transfer.amount_units < quote.price_units:
        raise PaymentRequired(SPENT)
    return event.receipt.block.number
