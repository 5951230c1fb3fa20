"""The cutoff block: the database may not know what earlier transfers paid for, so they are refused.

A new or a restored database was created at a moment, and knows only what was paid after it.
"""

from gateway.contracts import Chain
from gateway.domain import Block
from gateway.store import SqlStore

_META = "floor_block"

# If the newest block is this much older than the database, the endpoint lags behind.
_STALE_S = 60


async def cutoff_block(store: SqlStore, chain: Chain, born_at: float) -> int:
    """Return the number of the last block before the database was created.

    The block is looked for once and then kept in the database. It is looked for by time, so a
    chain that was silent at the creation does not turn away transfers that were mined since.
    Raises `ChainUnavailable`.
    """
    known = await store.known_meta(_META)
    if known is None:
        head = await chain.head()
        found = await _find_last_before(chain, head, born_at)
        if head.timestamp < born_at - _STALE_S:
            # The endpoint lags, so the number is too low to be kept.
            return found
        known = await store.meta(_META, lambda: str(found))
    return int(known)


async def last_block_before(chain: Chain, at: float) -> int:
    """Return the number of the newest block whose time is not after `at` (Unix seconds)."""
    return await _find_last_before(chain, await chain.head(), at)


async def _find_last_before(chain: Chain, head: Block, at: float) -> int:
    """Search by halving: block times only rise."""
    if head.timestamp <= at:
        return head.number
    # `low` is not after `at`, `high` is.
    low, high = 0, head.number
    # Most databases were created a short while ago, so look back in growing steps first.
    step = 1
    while high - step > 0:
        if (await chain.block_at(high - step)).timestamp <= at:
            low = high - step
            break
        high, step = high - step, step * 2
    while high - low > 1:
        middle = (low + high) // 2
        if (await chain.block_at(middle)).timestamp <= at:
            low = middle
        else:
            high = middle
    return low
