"""Finds out what mined transactions of the gateway's keys cost, and when they were mined.

A settlement's receipt is read while the buyer waits, and its gas is written down with it. The rest
is read here, in the background: the block's time, and the receipts of refunds.
"""

import structlog

from gateway.contracts import Chain, Store

# In one pass. Each takes two calls at most.
_MOST_AT_ONCE = 20
# A transaction without a receipt was replaced by another, or is older than what endpoints keep.
_MOST_LOOKS = 3
_MOST_REMEMBERED = 2_000
_log = structlog.get_logger()


class GasRecords:
    """Reads the receipts of mined transactions whose block's time is not written down yet."""

    def __init__(self, store: Store, chain: Chain) -> None:
        self._store = store
        self._chain = chain
        # By hash: how often a transaction had no receipt.
        self._looks: dict[str, int] = {}

    async def look(self) -> None:
        """Complete some transactions, the newest first. Raises `ChainUnavailable`."""
        given_up = [tx_hash for tx_hash, looks in self._looks.items() if looks >= _MOST_LOOKS]
        for tx_hash in await self._store.undated(_MOST_AT_ONCE, given_up):
            receipt = await self._chain.receipt(tx_hash)
            if receipt is None:
                self._count_look(tx_hash)
                continue
            await self._store.note_mined(receipt)
            self._looks.pop(tx_hash, None)

    def _count_look(self, tx_hash: str) -> None:
        self._looks[tx_hash] = self._looks.get(tx_hash, 0) + 1
        if len(self._looks) > _MOST_REMEMBERED:
            # The oldest is asked for again: it is the least likely to come up.
            self._looks.pop(next(iter(self._looks)))
