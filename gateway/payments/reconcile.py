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

from gateway.chain.authorization_checks import MAX_REMAINING_S, SPENT
from gateway.contracts import Chain, Clock, Quote
from gateway.domain import Authorization, Block, Payment, Receipt
from gateway.domain.records import LOG_LAG_S
from gateway.errors import ChainUnavailable, ExecutionError, PaymentRequired
from gateway.payments.nonce_events import (
    EventNotLogged,
    EventNotMined,
    NonceEvent,
    find_event,
    find_transfer,
    is_spent,
)
from gateway.settings import Settings
from gateway.store import SqlStore


def _earliest_use(signed: Authorization) -> float:
    """Return the Unix seconds from which the logs are searched.

    We accept an authorization at most `MAX_REMAINING_S` before it expires, and somebody else may
    have sent it as long before.
    """
    return signed.valid_before - 2 * MAX_REMAINING_S


@attrs.define(eq=False, slots=False, repr=False)
class Reconciler:
    """Closes payments by the outcome of their authorizations."""

    _store: SqlStore
    _chain: Chain
    _settings: Settings
    _now: Clock
    # When the database was created, in Unix seconds. It does not know what an older transfer paid.
    _born_at: float
    # Called with the released payment's task id.
    _on_dropped: Callable[[str], None]

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
        if task is not None:
            self._on_dropped(task.id)

    async def _close_spent(self, payment: Payment, signed: Authorization, block: Block) -> bool:
        """Find the event that spent the nonce; settle if it paid us, else release.

        Without an event, the payment is released once old logs are complete and no endpoint shows
        one. Raises `EventNotMined`, after which it stays open.
        """
        try:
            event = await find_event(
                self._chain,
                signed,
                self._settings.chain,
                after=0,
                since=_earliest_use(signed),
                known=block,
            )
        except EventNotLogged:
            event = None
        is_ours = event is not None and not event.receipt.block.may_precede(self._born_at)
        if event is not None and is_ours and await self._settle_by(payment, event.receipt):
            return True
        if event is None and block.timestamp < signed.valid_before + LOG_LAG_S:
            return False
        if event is not None and not _is_final(event, signed, block):
            return False
        await self._release(payment)
        return True

    async def _settle_by(self, payment: Payment, receipt: Receipt) -> bool:
        transfer = find_transfer(_authorization_of(payment), receipt, self._settings.chain)
        if transfer is None or transfer.amount_units < payment.price_units:
            return False
        await self._store.settle(payment.id, transfer, now=self._now())
        return True


def _is_final(event: NonceEvent, signed: Authorization, block: Block) -> bool:
    """Whether no reorganisation of the newest block can still replace the event by a transfer."""
    return block.number > event.receipt.block_number or block.timestamp >= signed.valid_before


def _authorization_of(payment: Payment) -> Authorization:
    if payment.authorization is None:
        raise ValueError("a direct payment is settled from the start")
    return payment.authorization


_SEARCHES = 3
_UNKNOWN = (
    "This authorization was used, and the chain does not show yet for what. "
    "Nothing more was charged; send the same request again in a few seconds."
)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EventSearch:
    """Checks, before anything is written, whether a spent nonce has paid us.

    Any account can sign an authorization with a nonce that it spent or cancelled long ago. It is a
    payment only if the chain shows that it paid us.
    """

    # Seconds between two searches.
    pause_s: float = 1.0

    async def check_payment(
        self, chain: Chain, signed: Authorization, quote: Quote, *, cutoff: int, born_at: float
    ) -> None:
        """Return if the nonce was spent by a transfer that pays the quote.

        Only blocks after `cutoff` and `born_at` (Unix seconds) count: the database may have lost
        the task of an earlier transfer. Takes about twenty RPC calls for a nonce that was spent
        within the hour, and three times forty at most if logs lag and no endpoint has old state.

        Raises `PaymentRequired` if the nonce paid for nothing here, and `ExecutionError` if the
        chain does not show the event yet.
        """
        try:
            event = await self._find_event(chain, signed, quote, cutoff)
        except ChainUnavailable as error:
            raise ExecutionError(_UNKNOWN, details=error.message) from error
        transfer = None
        if event is not None and not event.receipt.block.may_precede(born_at):
            transfer = find_transfer(signed, event.receipt, quote.network)
        if transfer is None or transfer.amount_units < quote.price_units:
            raise PaymentRequired(SPENT)

    async def _find_event(
        self, chain: Chain, signed: Authorization, quote: Quote, cutoff: int
    ) -> NonceEvent | None:
        """Return the event, or None if it is not after `cutoff`; search again while logs lag."""

        async def search() -> NonceEvent | None:
            head = await chain.head()
            if not await is_spent(chain, signed, head):
                raise EventNotMined("The newest block of this endpoint is from before the event.")
            return await find_event(
                chain,
                signed,
                quote.network,
                after=cutoff,
                since=_earliest_use(signed),
                known=head,
                is_patient=False,
            )

        for _ in range(_SEARCHES - 1):
            try:
                return await search()
            except EventNotMined:
                await asyncio.sleep(self.pause_s)
        return await search()
