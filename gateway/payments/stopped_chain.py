"""Notices a chain that makes no blocks, or that every RPC endpoint shows too late.

A transfer made then is not found, so no way to pay may be offered. A wrong clock of this machine
makes blocks look old too. Then blocks keep coming, and the endpoints' own clocks fit them.
"""

import asyncio

import attrs

from gateway.contracts import Chain
from gateway.domain import Block

# How late a block may be seen, beyond the patience for a pending hash. A buyer's transfer needs a
# few seconds, and examples and clients repeat a hash that is not found for about half a minute.
BUYER_S = 30.0
# A running chain makes a block in this time: Base five a second, other networks one in 2 s.
_NEXT_BLOCK_S = 1.0
_TRIES = 3


@attrs.define(kw_only=True, eq=False, repr=False)
class StoppedChain:
    """Judges the newest block. Reads the chain only if that block looks too old, or too new."""

    _chain: Chain
    # The oldest that the newest block may be, in seconds.
    stale_s: float
    # Between two reads while a newer block is awaited.
    pause_s: float = _NEXT_BLOCK_S

    def fits(self, block: Block, now: float) -> bool:
        """Whether a block is as recent as this machine's clock demands."""
        return abs(now - block.timestamp) <= self.stale_s

    async def find_problem(self, newest: Block, now: float) -> str | None:
        """Return the operator's message if transfers would not be seen now, or None.

        Raises `ChainUnavailable`.
        """
        ahead_s = now - newest.timestamp
        if self.fits(newest, now):
            return None
        newer = await self._wait_for_newer(newest)
        if newer is None:
            return (
                f"Block {newest.number} is {abs(ahead_s):.0f} s off this machine's clock, and no "
                "newer one comes: the chain or every RPC endpoint has stopped. Nothing is sold "
                "until a block comes."
            )
        if ahead_s > 0 and not self._is_recent(newer):
            return (
                f"The newest block is {ahead_s:.0f} s old: every RPC endpoint lags behind, or "
                "this machine's clock is ahead. Set another endpoint in GATEWAY_RPC_URLS, or set "
                "the clock right by NTP. Nothing is sold until then."
            )
        return None

    async def _wait_for_newer(self, newest: Block) -> Block | None:
        for _ in range(_TRIES):
            await asyncio.sleep(self.pause_s)
            block = await self._chain.newest_head()
            if block.number > newest.number:
                return block
        return None

    def _is_recent(self, block: Block) -> bool:
        """Whether the endpoints' own clocks show that a block is recent; unknown counts as no."""
        time = self._chain.server_time()
        return time is not None and time - block.timestamp <= self.stale_s
