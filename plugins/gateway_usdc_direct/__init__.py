"""Payment by a plain USDC transfer whose hash the buyer submits (spec §4.2)."""

import asyncio
from collections.abc import Callable

from gateway import (
    Block,
    InvalidPayment,
    PluginContext,
    Receipt,
    Transfer,
    TransferVerifier,
    TxFailed,
    TxNotFound,
    hookimpl,
)
from gateway.domain.eip3009 import transfers_to

# About one block of Base.
_ASK_AGAIN_S = 0.25
_POLLS_OF_UNKNOWN = 3


@hookimpl
def register_transfer_verifier(
    register: Callable[[TransferVerifier], None], context: PluginContext
) -> None:
    """Offer the direct flow on the configured network."""
    register(DirectVerifier(context))


class DirectVerifier:
    """Reads a mined transaction. Implements `gateway.TransferVerifier`."""

    def __init__(self, context: PluginContext, *, ask_again_s: float = _ASK_AGAIN_S) -> None:
        self._settings = context.settings
        self._chain = context.chain
        self.ask_again_s = ask_again_s

    async def find_transfers(
        self, tx_hash: str, *, floor_block: int, born_at: float, now: float
    ) -> list[Transfer]:
        """Return the transfers to the wallet in the transaction, at least one.

        Only the receipt's logs count. The transaction's own `to` may be a router or a smart wallet.
        """
        receipt = await self._wait_for_receipt(tx_hash)
        if not receipt.succeeded:
            raise TxFailed("The transaction failed on-chain; nothing was paid.")
        transfers = transfers_to(self._settings.wallet_key, receipt, self._settings.chain)
        if not transfers:
            raise InvalidPayment("The transaction holds no USDC transfer to the gateway wallet.")
        self._check_age(receipt.block, floor_block, born_at, now)
        return transfers

    async def _wait_for_receipt(self, tx_hash: str) -> Receipt:
        """Return the receipt once it has its confirmations.

        Polls for `tx_patience` seconds, then raises `TxNotFound`. A hash that no RPC endpoint
        knows, not even as pending, gets only a few polls, because anyone can invent a hash. A
        single poll would not do: one address may serve several nodes, and one of them may lag by a
        block. The receipt is requested first: most hashes have one, and then this is the only call.
        """
        waits, is_known = round(self._settings.tx_patience / self.ask_again_s), False
        for wait in range(waits + 1):
            receipt = await self._chain.receipt(tx_hash)
            if receipt is not None and await self._is_deep_enough(receipt):
                return receipt
            is_known = is_known or receipt is not None
            is_known = is_known or await self._chain.knows_transaction(tx_hash)
            if not is_known and wait == _POLLS_OF_UNKNOWN - 1:
                raise TxNotFound(
                    "No such transaction is known yet. Wait until it is mined, then resend."
                )
            if wait < waits:
                await asyncio.sleep(self.ask_again_s)
        raise TxNotFound("The transaction is not on the chain yet. Wait until it is, then resend.")

    async def _is_deep_enough(self, receipt: Receipt) -> bool:
        needed = self._settings.confirmations
        if needed == 1:
            return True
        head = await self._chain.head()
        return head.number - receipt.block.number + 1 >= needed

    def _check_age(self, block: Block, floor_block: int, born_at: float, now: float) -> None:
        """Raise `InvalidPayment` if the transfer may be older than this database, or is too old.

        The database does not know what an older transfer paid for. Block and time are both
        compared: an endpoint that lagged when the database was created reported too low a block.
        """
        if block.number <= floor_block:
            raise InvalidPayment(
                "The transfer is older than this gateway's records.",
                details=f"block {block.number} is not after block {floor_block}",
            )
        if block.may_precede(born_at):
            raise InvalidPayment("The transfer is older than this gateway's records.")
        hours = self._settings.max_transfer_age_hours
        if not block.may_follow(now - hours * 3600):
            raise InvalidPayment(f"The transfer is more than {hours:g} hours old.")
