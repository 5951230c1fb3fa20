"""The pace of the chain: seconds between two blocks, and whether it has changed."""

from gateway.contracts.chain import Chain

# Blocks in each of two halves: a minute of Base. A shared second is then an error of 2 %.
_HALF_BLOCKS = 300
# Paces differ if one is larger than the other by more than this factor.
_FACTOR = 1.5


async def measure_pace(chain: Chain) -> float | None:
    """Return the mean seconds between two of the newest 600 blocks.

    None if it is not known: the chain is too young, or its pace has just changed. Takes three RPC
    calls. Raises `ChainUnavailable`.
    """
    head = await chain.head()
    if head.number < 2 * _HALF_BLOCKS:
        return None
    middle = await chain.block_at(head.number - _HALF_BLOCKS)
    first = await chain.block_at(head.number - 2 * _HALF_BLOCKS)
    newer_s, older_s = head.timestamp - middle.timestamp, middle.timestamp - first.timestamp
    if min(newer_s, older_s) <= 0 or paces_differ(newer_s, older_s):
        return None
    return (newer_s + older_s) / (2 * _HALF_BLOCKS)


def paces_differ(one_s: float, other_s: float) -> bool:
    """Whether two paces are not the same, apart from noise."""
    return max(one_s, other_s) > _FACTOR * min(one_s, other_s)


def describe_pace(block_s: float) -> str:
    """Return such as "a block every 0.2 s"."""
    return f"a block every {float(f'{block_s:.2g}'):g} s"
