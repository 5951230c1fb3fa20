"""The floor: transfers mined before this database was born may be spent; they are refused."""

from gateway.contracts import Chain, Store

_META = "floor_block"


async def floor_block(store: Store, chain: Chain, born_at: float) -> int:
    """Return the last block before the database's birth; it is looked for once and kept.

    The chain may have been silent at birth: then blocks mined since are above the floor, and
    whoever paid meanwhile is not turned away.
    """
    known = await store.known_meta(_META)
    if known is None:
        found = await last_block_before(chain, born_at)
        known = await store.meta(_META, lambda: str(found))
    return int(known)


async def last_block_before(chain: Chain, at: float) -> int:
    """Return the number of the newest block whose time is not after `at`; block times rise."""
    head = await chain.head()
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
