"""Closes a payment of unknown outcome by facts of the chain, and by nothing else.

Three facts close one, all read at one pinned block:

- settled: `AuthorizationUsed(from, nonce)` directly followed by a transfer to the wallet of at
  least the price, in any transaction, whoever sent it;
- released: the nonce is unused at a block whose time is past `validBefore`;
- released: the nonce was used or cancelled without such a transfer.

A spent nonce alone proves nothing: cancelling spends it, and the payer may have paid somebody
else with it. A log that is not found proves nothing either while the endpoint may lag behind.
"""

from gateway.contracts import Chain, Clock, Store
from gateway.domain import Authorization, Block, Payment, Receipt
from gateway.payments.authorizations import SPAN, find_events, find_transfer, is_spent, uses
from gateway.settings import Settings

_LOG_LAG_S = 120  # past `validBefore`, after which logs still missing do not exist
_OVERLAP = 100  # blocks searched again: logs lag, and the newest blocks may be replaced


class Reconciler:
    """Finds out what became of an authorization, and writes it down (T3 or TR)."""

    def __init__(self, store: Store, chain: Chain, settings: Settings, now: Clock) -> None:
        self._store = store
        self._chain = chain
        self._settings = settings
        self._now = now
        self._searched: dict[int, int] = {}  # payment → block up to which its event was not found

    async def close_by_receipt(self, payment: Payment, tx_hash: str) -> bool:
        """Return whether this transaction settled the payment; no receipt proves nothing."""
        receipt = await self._chain.receipt(tx_hash)
        return receipt is not None and await self._settle_by(payment, receipt)

    async def close(self, payment: Payment) -> bool:
        """Return whether the outcome is known now and written down."""
        signed = _signed(payment)
        block = await self._chain.head()
        if await is_spent(self._chain, signed, block):
            return await self._close_spent(payment, signed, block)
        if block.timestamp < signed.valid_before:
            return False
        await self._release(payment)
        return True

    async def _release(self, payment: Payment) -> None:
        await self._store.release(payment.id, now=self._now())
        self._searched.pop(payment.id, None)

    async def _close_spent(self, payment: Payment, signed: Authorization, block: Block) -> bool:
        """Close by the event that spent the nonce: settled where it paid us, else released.

        Each look searches only blocks that are new; the one that may release searches all.
        """
        is_last = block.timestamp >= signed.valid_before + _LOG_LAG_S
        start = payment.search_from_block
        if not is_last:
            start = max(start, self._searched.get(payment.id, 0) - _OVERLAP)
        for tx_hash, was_used in await find_events(
            self._chain, signed, from_block=start, known=block, span=SPAN
        ):
            if was_used:
                receipt = await self._chain.receipt(tx_hash)
                if receipt is None:
                    return False  # the endpoint knows the log but not its transaction yet
                if await self._settle_by(payment, receipt):
                    return True
                if not uses(receipt, signed, self._settings.chain):
                    return False  # its block was replaced between the two reads: look again
            await self._release(payment)
            return True
        if not is_last:
            self._searched[payment.id] = block.number
            return False
        await self._release(payment)
        return True

    async def _settle_by(self, payment: Payment, receipt: Receipt) -> bool:
        """T3 where the receipt holds this authorization's transfer, of at least the price."""
        transfer = find_transfer(_signed(payment), receipt, self._settings.chain)
        if transfer is None or transfer.amount_units < payment.price_units:
            return False
        await self._store.settle(payment.id, transfer, now=self._now())
        self._searched.pop(payment.id, None)
        return True


def _signed(payment: Payment) -> Authorization:
    if payment.authorization is None:
        raise ValueError("a direct payment is settled from the start")
    return payment.authorization
