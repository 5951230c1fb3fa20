"""Reads the token's transfers over a long range of blocks, in pieces that endpoints accept."""

from collections.abc import AsyncIterator, Sequence

from gateway.chain.log_ranges import LogsTooNarrow
from gateway.contracts import Chain
from gateway.contracts.chain import Addresses
from gateway.domain import MinedTransfer

# Many endpoints answer for 10,000 blocks at once: 33 minutes of Base. A narrower one is asked
# several times per piece.
_PIECE_BLOCKS = 10_000
# A long search makes a piece no smaller than this.
_LEAST_BLOCKS = 1_000


async def transfer_pieces(
    chain: Chain,
    first: int,
    last: int,
    *,
    recipient: Addresses = None,
    sender: Addresses = None,
    least_blocks: int = _LEAST_BLOCKS,
) -> AsyncIterator[tuple[int, Sequence[MinedTransfer]]]:
    """Yield (last block of a piece, its transfers above zero), oldest first.

    Leaves out transfers from an address to itself. Raises `ChainUnavailable`.
    """
    size = max(min(_PIECE_BLOCKS, last - first + 1), 1)
    while first <= last:
        end = min(first + size - 1, last)
        try:
            found = await chain.transfer_logs(
                recipient, sender=sender, from_block=first, to_block=end
            )
        except LogsTooNarrow:
            if size <= least_blocks:
                raise
            size = max(size // 2, least_blocks)
            continue
        yield end, [one for one in found if one.amount_units and one.sender != one.recipient]
        first = end + 1
