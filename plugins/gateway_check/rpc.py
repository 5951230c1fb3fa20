"""The row of one RPC endpoint: the calls and the searches that sales and books depend on."""

import time

from gateway.chain.authorization_checks import MAX_REMAINING_S
from gateway.chain.block_times import first_block_since
from gateway.chain.client import Web3Chain
from gateway.chain.log_ranges import LogsTooNarrow
from gateway.domain import Block
from gateway.domain.eip3009 import AUTHORIZATION_STATE, word
from gateway.errors import ChainUnavailable
from gateway.settings import Settings

# An RPC endpoint is stale if its newest block is older than this.
_STALE_S = 60
# The longest search for the transaction that spent a nonce goes back this far.
_SEARCHED_S = 2 * MAX_REMAINING_S
# The lists of transfers are read in pieces of this many blocks.
_PIECE_BLOCKS = 10_000
_SOME_NONCE = "0x" + "11" * 32


async def check_rpc(settings: Settings, chain: Web3Chain) -> str:
    """Return a description of an endpoint that allows every search of the gateway.

    Raises `ValueError` with the search that it does not allow, and `ChainUnavailable`.
    """
    began = time.perf_counter()
    head = await chain.head()
    ms = (time.perf_counter() - began) * 1000
    _check_age(time.time() - head.timestamp)
    searched = await _check_nonce_search(chain, settings.wallet, head)
    await _check_transfer_search(chain, settings.wallet, head)
    limit = chain.logs_limit()
    known = f"chain {settings.chain.chain_id}, USDC's domain separator matches"
    narrow = f", logs limited to {limit:,} blocks per request" if limit is not None else ""
    return f"{known}, block {head.number}, {ms:.0f} ms, {searched}{narrow}"


def _check_age(age_s: float) -> None:
    if age_s > _STALE_S:
        raise ValueError(
            f"its newest block is {age_s:.0f} s behind this machine's clock: either the endpoint "
            "has stopped, or the clock is ahead (see the row clock)"
        )


async def _check_nonce_search(chain: Web3Chain, wallet: str, head: Block) -> str:
    """Search as for a nonce that was spent two hours ago: by old state, or else by logs."""
    first = await first_block_since(chain, head.timestamp - _SEARCHED_S, head=head)
    try:
        await chain.call_uint(AUTHORIZATION_STATE + word(wallet) + word(_SOME_NONCE), at=first)
    except ChainUnavailable:
        await _read_events(chain, wallet, first, head)
        limit = chain.logs_limit()
        queries = 1 if limit is None else -(-(head.number - first + 1) // limit)
        counted = f"{queries} queries" if queries > 1 else "1 query"
        return f"no old state: a search for a spent nonce reads logs, {counted}"
    await _read_events(chain, wallet, head.number, head)
    return "keeps old state"


async def _read_events(chain: Web3Chain, wallet: str, first: int, head: Block) -> None:
    try:
        await chain.authorization_logs(
            wallet, _SOME_NONCE, from_block=first, to_block=head.number, known=head
        )
    except LogsTooNarrow as error:
        raise ValueError(
            "it keeps no state of two hours ago, so the transaction that spent a nonce must be "
            f"searched in logs. {error.message}"
        ) from None


async def _check_transfer_search(chain: Web3Chain, wallet: str, head: Block) -> None:
    first = max(head.number - _PIECE_BLOCKS + 1, 0)
    try:
        await chain.transfer_logs(wallet, from_block=first, to_block=head.number)
    except LogsTooNarrow as error:
        raise ValueError(
            "sales work, but `gateway transfers unused` and `gateway books --reconcile` would take "
            f"too many queries. {error.message}"
        ) from None
