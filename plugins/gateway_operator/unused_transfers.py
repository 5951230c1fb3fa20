"""Finds unused transfers: those to the wallet that bought nothing."""

import asyncio
import math
import time
from collections.abc import Sequence

import attrs

from gateway.chain.block_times import first_block_since, last_block_by
from gateway.contracts import Chain, Clock
from gateway.domain import MinedTransfer
from gateway.store import SqlStore
from gateway_operator.background_search import BackgroundSearch
from gateway_operator.sql.payment_lists import unused
from gateway_operator.transfer_search import transfer_pieces

# The background search covers this many days. It pauses this many seconds after each RPC call,
# because sales need the same endpoint and public ones limit calls.
_DAYS = 7.0
_PAUSE_S = 0.5
# The command pauses less, because an operator waits for it.
_COMMAND_PAUSE_S = 0.2
# Anyone can send dust without end, so only this many of the largest transactions are kept.
_MAX_KEPT = 500


async def list_unused(
    chain: Chain, store: SqlStore, wallet: str, *, days: float, hours: float
) -> list[MinedTransfer]:
    """Return unused transfers of the last `days` that are older than `hours`.

    `wallet` is a lower-case address. Leaves out transfers of zero and from the wallet itself.
    Searches only up to the safe head, so a listed transfer cannot be reorganised away. Raises
    `ChainUnavailable`.
    """
    head, now = await chain.safe_head(), time.time()
    first = await first_block_since(chain, now - days * 86_400, head=head)
    # The newest block may be dated a moment ahead of the clock.
    is_all = hours <= 0
    last = head.number if is_all else await last_block_by(chain, now - hours * 3600, head=head)
    found: list[MinedTransfer] = []
    async for end, transfers in transfer_pieces(chain, first, last, recipient=wallet):
        found += await store.sum(unused, transfers)
        if end < last:
            await asyncio.sleep(_COMMAND_PAUSE_S)
    return found


@attrs.frozen(kw_only=True)
class UnusedTransfer:
    """A transfer to the wallet that has bought nothing so far."""

    transfer: MinedTransfer

    # Its block's time, in Unix seconds.
    at: float

    def is_older(self, born_at: float) -> bool:
        """Whether its block is older than a database that was made at `born_at`."""
        # Blocks are dated by whole seconds.
        return self.at < math.floor(born_at)


class UnusedSearch(BackgroundSearch):
    """Searches the last seven days, and keeps the result.

    The first search makes about 300 log queries, one after the other, or five times as many at an
    endpoint limited to 2,000 blocks; later ones read only new blocks. Each also reads the times of
    the transfers' blocks.
    """

    name = "unused-search"

    def __init__(self, chain: Chain, store: SqlStore, wallet: str, now: Clock) -> None:
        super().__init__(chain, store, now)
        self._wallet = wallet
        self.pause_s = _PAUSE_S
        # Newest first.
        self.known: Sequence[UnusedTransfer] = ()
        # Start of the searched period, in Unix seconds.
        self.since: float | None = None
        # The number of small transfers left out.
        self.left_out = 0
        self._next_block: int | None = None
        # All incoming transfers of each transaction with an unused one. The number of equal ones
        # shows later whether one was used.
        self._by_transaction: dict[str, list[MinedTransfer]] = {}
        # Times of their blocks, in Unix seconds.
        self._times: dict[int, float] = {}

    async def _advance(self) -> None:
        head = await self._chain.safe_head()
        self.since = self._now() - _DAYS * 86_400
        if self._next_block is None:
            self._next_block = await first_block_since(self._chain, self.since, head=head)
        pieces = transfer_pieces(self._chain, self._next_block, head.number, recipient=self._wallet)
        async for end, transfers in pieces:
            await self._note(transfers)
            self._next_block = end + 1
            await asyncio.sleep(self.pause_s)
        await self._forget_used(self.since)

    async def _note(self, transfers: Sequence[MinedTransfer]) -> None:
        hashes = {each.tx_hash for each in await self._store.sum(unused, transfers)}
        for each in transfers:
            if each.tx_hash in hashes:
                self._by_transaction.setdefault(each.tx_hash, []).append(each)
        self._drop_smallest()

    async def _forget_used(self, since: float) -> None:
        """Drop transfers that were used since, or are too old."""
        every = [each for found in self._by_transaction.values() for each in found]
        kept = await self._store.sum(unused, every)
        await self._find_times({each.block_number for each in kept})
        shown = [
            UnusedTransfer(transfer=each, at=at)
            for each in kept
            if (at := self._times[each.block_number]) >= since
        ]
        left = {one.transfer.tx_hash for one in shown}
        self._by_transaction = {
            tx_hash: found for tx_hash, found in self._by_transaction.items() if tx_hash in left
        }
        self.known = sorted(shown, key=lambda one: one.at, reverse=True)

    async def _find_times(self, blocks: set[int]) -> None:
        """Read the missing times of these blocks, and forget all others."""
        self._times = {number: at for number, at in self._times.items() if number in blocks}
        for number in sorted(blocks - self._times.keys()):
            self._times[number] = (await self._chain.block_at(number)).timestamp
            await asyncio.sleep(self.pause_s)

    def _drop_smallest(self) -> None:
        if len(self._by_transaction) <= _MAX_KEPT:
            return

        def amount(tx_hash: str) -> int:
            return sum(each.amount_units for each in self._by_transaction[tx_hash])

        for tx_hash in sorted(self._by_transaction, key=amount)[:-_MAX_KEPT]:
            self.left_out += len(self._by_transaction.pop(tx_hash))
