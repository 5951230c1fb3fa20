"""The floor: transfers mined before this database was born may be spent; they are refused."""

from gateway.contracts import Chain, Store
from gateway.domain import Block

_META = "floor_block"
_STALE_S = 60  # a head this much older than now is of an endpoint that lags


async def cutoff_block(store: Store, chain: Chain, born_at: float) -> int:
    """Return the last block before the database's birth; it is looked for once and kept.

    The chain may have been silent at birth: then blocks mined since are above the floor, and
    whoever paid meanwhile is not turned away.
    """
    known = await store.known_meta(_META)
    if known is None:
        head = await chain.head()
        found = await _last_before(chain, head, born_at)
        if head.timestamp < born_at - _STALE_S:
            return found  # an endpoint that lags says too low a number: it is not kept
        known = await store.meta(_META, lambda: str(found))
    return int(known)


async def last_block_before(chain: Chain, at: float) -> int:
    """Return the number of the newest block whose time is not after `at`; block times rise."""
    return await _last_before(chain, await chain.head(), at)


async def _last_before(chain: Chain, head: Block, at: float) -> int:
    if head.timestamp <= at:
        return head.number
    low, high = 0, head.number  # `high` is after `at`
    step = 1
    while high - step > 0:  # the birth was lately: look back in growing steps before halving
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
