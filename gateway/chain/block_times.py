"""Finds blocks by their time.

Five blocks of Base share a timestamp in whole seconds. So a search returns the first or the last
block that may have been made at a time, as its name says. With `timestampMs` both are exact.
"""

from collections.abc import Callable

from gateway.contracts.chain import Chain
from gateway.domain import Block

# Where the first step back from the head goes: 200 seconds of Base.
_FIRST_STEP = 1_000
# Blocks on each side of an estimate. Ten cover a shared second with its neighbours.
_MARGIN = 10


async def last_block_by(chain: Chain, at: float, *, head: Block | None = None) -> int:
    """Return the newest block that may have been made at or before `at` (Unix seconds).

    So it is the last one of its second. Block 0 always counts as made by then. Pass `head` if it is
    known. Raises `ChainUnavailable`.
    """
    head = head or await chain.head()
    return max(await _find_last(chain, head, at, lambda block: block.may_precede(at)), 0)


async def first_block_since(chain: Chain, at: float, *, head: Block | None = None) -> int:
    """Return the oldest block that may have been made at or after `at` (Unix seconds).

    So it is the first one of its second. It is the head's successor if the head is older. Pass
    `head` if it is known. Raises `ChainUnavailable`.
    """
    head = head or await chain.head()
    return await _find_last(chain, head, at, lambda block: not block.may_follow(at)) + 1


async def _find_last(
    chain: Chain, head: Block, at: float, is_early: Callable[[Block], bool]
) -> int:
    """Return the last block that is early, or -1. All blocks before an early one are early.

    Each round tries both sides of an estimate by the pace between the two enclosing blocks, then
    the middle. That takes about ten calls at a steady pace, and three times a binary search's at
    worst.
    """
    if is_early(head):
        return head.number
    low, high = await _enclose(chain, head, at, is_early)
    if low is None:
        return -1
    while high.number - low.number > 1:
        estimate = low.number + round((high.number - low.number) * _share(low, high, at))
        for guess in (estimate - _MARGIN, estimate + _MARGIN, None):
            number = (low.number + high.number) // 2 if guess is None else guess
            if low.number < number < high.number:
                block = await chain.block_at(number)
                low, high = (block, high) if is_early(block) else (low, block)
    return low.number


async def _enclose(
    chain: Chain, head: Block, at: float, is_early: Callable[[Block], bool]
) -> tuple[Block | None, Block]:
    """Return (an early block, a later one that is not), by steps back from the head.

    The early one is None if even block 0 is not early.
    """
    high, step = head, _FIRST_STEP
    while high.number:
        block = await chain.block_at(max(high.number - step, 0))
        if is_early(block):
            return block, high
        took_s = high.timestamp - block.timestamp
        # A fifth more than needed, so that one estimate suffices.
        estimate = 1.2 * (block.timestamp - at) / took_s if took_s > 0 else 0.0
        step = max(2 * step, round(estimate * (high.number - block.number)))
        high = block
    return None, high


def _share(low: Block, high: Block, at: float) -> float:
    """Return the place of `at` between two blocks, from 0 to 1."""
    between_s = high.timestamp - low.timestamp
    return min(max((at - low.timestamp) / between_s, 0.0), 1.0) if between_s else 0.5
