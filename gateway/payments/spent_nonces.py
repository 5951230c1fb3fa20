"""Checks, before anything is written, whether a spent nonce has paid us.

Any account can sign an authorization with a nonce that it spent or cancelled long ago. It is a
payment only if the chain's logs show that it paid us.
"""

import asyncio

import attrs

from gateway.chain.authorization_checks import SPENT
from gateway.contracts import Chain
from gateway.domain import Authorization, Block
from gateway.domain.eip3009 import Network
from gateway.errors import ChainUnavailable, ExecutionError, PaymentRequired
from gateway.payments.reconcile import EventNotMined, find_event, find_transfer, is_spent

# A reorganisation moves an event by no more than this many blocks.
_REORGANISED_BLOCKS = 100
_SEARCHES = 3
_UNKNOWN = (
    "This authorization was used, and the chain does not show yet for what. "
    "Nothing more was charged; send the same request again in a few seconds."
)


@attrs.frozen(kw_only=True)
class EventSearch:
    """How far back to search for the event of a spent nonce, and how fast to retry."""

    # 67 minutes. An authorization is valid for 65 minutes at most, so a third party that submits it
    # before us does so within them.
    recent_blocks: int = 2_000
    # Every working endpoint has indexed the logs of blocks this old.
    indexed_blocks: int = 100
    # Seconds between two searches.
    pause_s: float = 1.0


async def find_payment(
    chain: Chain,
    signed: Authorization,
    network: Network,
    *,
    price_units: int,
    cutoff: int,
    search: EventSearch,
) -> int:
    """Return the block from which to search for the event that spent the nonce and paid us.

    Only blocks after `cutoff` count: the database may have lost the task of an earlier transfer.
    Takes about twenty RPC calls, or more if the endpoint limits the blocks of a log query.

    Raises `PaymentRequired` if the nonce paid for nothing here, and `ExecutionError` if the chain
    does not show the event yet.
    """
    try:
        found = await _search_recent(chain, signed, network, price_units, cutoff, search)
    except ChainUnavailable as error:
        raise ExecutionError(_UNKNOWN, details=error.message) from error
    if found is None:
        raise ExecutionError(_UNKNOWN)
    return max(found - _REORGANISED_BLOCKS, cutoff + 1)


async def _search_recent(
    chain: Chain,
    signed: Authorization,
    network: Network,
    price_units: int,
    cutoff: int,
    search: EventSearch,
) -> int | None:
    """Return the block of the transfer that paid us, or None if no log shows the event yet.

    Raises `PaymentRequired` if the nonce paid for nothing here, and `ChainUnavailable`.
    """
    head = await chain.head()
    first = max(head.number - search.recent_blocks + 1, cutoff + 1)
    for attempt in range(_SEARCHES):
        if attempt:
            await asyncio.sleep(search.pause_s)
            head = await chain.head()
        found = await _find_block(chain, signed, network, head, first, price_units)
        if found is not None:
            return found
        before = await chain.block_at(max(head.number - search.indexed_blocks, cutoff, 0))
        if before.number < head.number and await is_spent(chain, signed, before):
            raise PaymentRequired(SPENT)
        # The nonce was spent after that block.
        first = max(first, before.number + 1)
    return None


async def _find_block(
    chain: Chain,
    signed: Authorization,
    network: Network,
    head: Block,
    first: int,
    price_units: int,
) -> int | None:
    """Search the logs once. Returns and raises as `_search_recent` does."""
    try:
        event = await find_event(chain, signed, network, from_block=first, known=head)
    except EventNotMined:
        return None
    if event is None:
        return None
    transfer = find_transfer(signed, event.receipt, network)
    if transfer is None or transfer.amount_units < price_units:
        raise PaymentRequired(SPENT)
    return event.receipt.block.number
