"""Finds out what mined transactions of the gateway's keys cost, and when they were mined.

The receipts of settlements and refunds are written down where they are read. Those that nobody
else reads are read here, in the background: of transactions that another one overtook.
"""

import asyncio

from gateway.contracts import Chain
from gateway.store import SqlStore

# Sales need the same endpoint: so many are asked for in a row, two calls each, and then a rest
# follows, in seconds. A thousand take a minute.
_MOST_AT_ONCE = 20
_REST_S = 1.0
# A transaction without a receipt was replaced by another, or is older than what endpoints keep.
# Once so many have none, a look ends: SQLite names at most 32,766 in one statement.
_MOST_LOOKS = 3
_MOST_REMEMBERED = 2_000


class GasRecords:
    """Reads the receipts of mined transactions whose block's time is not written down yet."""

    def __init__(self, store: SqlStore, chain: Chain) -> None:
        self._store = store
        self._chain = chain
        self.rest_s = _REST_S
        # By hash: how often a transaction had no receipt.
        self._looks: dict[str, int] = {}

    async def look(self) -> None:
        """Complete every transaction that can be, the newest first. Raises `ChainUnavailable`."""
        asked = [tx_hash for tx_hash, looks in self._looks.items() if looks >= _MOST_LOOKS]
        while len(asked) < _MOST_REMEMBERED:
            undated = await self._store.undated(_MOST_AT_ONCE, asked)
            if not undated:
                return
            for tx_hash in undated:
                receipt = await self._chain.receipt(tx_hash)
                if receipt is None:
                    self._count_look(tx_hash)
                    asked.append(tx_hash)
                else:
                    await self._store.note_mined(receipt)
                    self._looks.pop(tx_hash, None)
            await asyncio.sleep(self.rest_s)

    def _count_look(self, tx_hash: str) -> None:
        self._looks[tx_hash] = self._looks.get(tx_hash, 0) + 1
        if len(self._looks) > _MOST_REMEMBERED:
            # The oldest is asked for again: it is the least likely to come up.
            self._looks.pop(next(iter(self._looks)))
