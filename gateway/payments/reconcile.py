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
from gateway.settings import Settings
from gateway.usdc import AUTHORIZATION_STATE, transfers_to, word

_LOG_RANGE = 2_000  # blocks a query; public endpoints refuse more
_LOG_SPAN = 60_000  # blocks from the first to look at in which the event must be, if there is one
_LOG_LAG_S = 120  # past `validBefore`, after which logs still missing do not exist


class Reconciler:
    """Finds out what became of an authorization, and writes it down (T3 or TR)."""

    def __init__(self, store: Store, chain: Chain, settings: Settings, now: Clock) -> None:
        self._store = store
        self._chain = chain
        self._settings = settings
        self._now = now

    async def close_by_receipt(self, payment: Payment, tx_hash: str) -> bool:
        """Return whether this transaction settled the payment; no receipt proves nothing."""
        receipt = await self._chain.receipt(tx_hash)
        return receipt is not None and await self._settle_by(payment, receipt)

    async def close(self, payment: Payment) -> bool:
        """Return whether the outcome is known now and written down."""
        signed = _signed(payment)
        block = await self._chain.head()
        if await self._is_spent(signed, block):
            return await self._close_spent(payment, signed, block)
        if block.timestamp < signed.valid_before:
            return False
        await self._store.release(payment.id, now=self._now())
        return True

    async def _close_spent(self, payment: Payment, signed: Authorization, block: Block) -> bool:
        """Close by the event that spent the nonce: settled where it paid us, else released."""
        for tx_hash, was_used in await self._events(payment, signed, block):
            if was_used:
                receipt = await self._chain.receipt(tx_hash)
                if receipt is None:
                    return False  # the endpoint knows the log but not its transaction yet
                if await self._settle_by(payment, receipt):
                    return True
            await self._store.release(payment.id, now=self._now())
            return True
        if block.timestamp < signed.valid_before + _LOG_LAG_S:
            return False
        await self._store.release(payment.id, now=self._now())
        return True

    async def _is_spent(self, signed: Authorization, block: Block) -> bool:
        call = AUTHORIZATION_STATE + word(signed.sender) + word(signed.nonce)
        return bool(await self._chain.call_uint(call, at=block))

    async def _events(
        self, payment: Payment, signed: Authorization, block: Block
    ) -> list[tuple[str, bool]]:
        """Return the events of the nonce up to the pinned block; there is at most one."""
        start = payment.search_from_block
        last = min(block.number, start + _LOG_SPAN)
        for first in range(start, last + 1, _LOG_RANGE):
            found = await self._chain.authorization_logs(
                signed.sender,
                signed.nonce,
                from_block=first,
                to_block=min(first + _LOG_RANGE - 1, last),
                known=block,
            )
            if found:
                return found
        return []

    async def _settle_by(self, payment: Payment, receipt: Receipt) -> bool:
        """T3 where the receipt holds this authorization's transfer, of at least the price."""
        signed, network = _signed(payment), self._settings.chain
        if not receipt.succeeded:
            return False
        key = network.authorization_key(signed.sender, signed.nonce)
        for transfer in transfers_to(self._settings.wallet_key, receipt, network):
            pays = transfer.amount_units >= payment.price_units
            if transfer.authorization_key == key and pays:
                await self._store.settle(payment.id, transfer, now=self._now())
                return True
        return False


def _signed(payment: Payment) -> Authorization:
    if payment.authorization is None:
        raise ValueError("a direct payment is settled from the start")
    return payment.authorization
