"""Closes a payment of unknown outcome by facts of the chain, and by nothing else.

Three facts close a payment, all read at one pinned block:

- settled: `AuthorizationUsed(from, nonce)` directly followed by a transfer to the wallet of at
  least the price, in any transaction, sent by anybody;
- released: the nonce is unused at a block whose time is past `validBefore`;
- released: the nonce was used or cancelled without such a transfer.

A spent nonce alone proves nothing: cancelling spends it, and the payer may have paid somebody
else with it. A log that is not found proves nothing either while the endpoint may lag behind.
"""

from collections.abc import Callable

from gateway.contracts import Chain, Clock
from gateway.domain import Authorization, Block, Payment, Receipt
from gateway.domain.records import LOG_LAG_S
from gateway.payments.authorizations import SPAN, find_event, find_transfer, is_spent
from gateway.settings import Settings
from gateway.store import SqlStore

# Each search repeats this many blocks: logs lag behind, and the newest blocks may be replaced.
_OVERLAP_BLOCKS = 100


class Reconciler:
    """Finds out what became of an authorization, and settles or releases its payment."""

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
        # Called with the id of the task of each payment that is released.
        self._on_dropped = on_dropped
        self.overlap_blocks = overlap_blocks
        # By the payment's id: the block up to which its event was not found.
        self._searched: dict[int, int] = {}

    async def close_by_receipt(self, payment: Payment, tx_hash: str) -> bool:
        """Return whether this transaction settled the payment. A missing receipt proves nothing.

        Raises `ChainUnavailable`.
        """
        receipt = await self._chain.receipt(tx_hash)
        return receipt is not None and await self._settle_by(payment, receipt)

    async def close(self, payment: Payment) -> bool:
        """Return whether the outcome is known and written down now. Raises `ChainUnavailable`."""
        signed = _authorization_of(payment)
        block = await self._chain.head()
        if await is_spent(self._chain, signed, block):
            return await self._close_spent(payment, signed, block)
        if block.timestamp < signed.valid_before:
            return False
        await self._release(payment)
        return True

    async def _release(self, payment: Payment) -> None:
        # Looked up first: once the payment is released, nothing more may fail.
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

        Each look searches only new blocks. The last look searches all blocks, because it releases
        the payment if it finds no event.
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
        """Settle if the receipt holds this authorization's transfer, of at least the price."""
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
