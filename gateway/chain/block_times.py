"""Finds blocks by their time."""

from gateway.contracts.chain import Chain
from gateway.domain import Block


async def last_block_before(chain: Chain, at: float) -> int:
    """Return the number of the newest block up to `at` (Unix seconds).

    Raises `ChainUnavailable`.
    """
    return await last_block_up_to(chain, await chain.head(), at)


async def last_block_up_to(chain: Chain, head: Block, at: float) -> int:
    """Like `last_block_before`, with a known head. Block times only rise: a binary search."""
    if head.timestamp <= at:
        return head.number
    # `low` is not after `at`, `high` is.
    low, high = 0, head.number
    # Most databases are young, so first step back from the head in doubling steps.
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
