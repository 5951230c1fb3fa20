"""Finds the event that spent the nonce of an authorization, by state or else by logs.

The token's state shows in which block a nonce was spent, whatever the age and pace of the blocks,
and its logs of that block name the transaction. An endpoint without old state leaves a search of
the logs. Logs may lag behind state, so a missing log proves nothing.
"""

import attrs

from gateway.chain.block_times import first_block_since, last_block_by
from gateway.contracts import Chain
from gateway.domain import Authorization, Block, Receipt, Transfer
from gateway.domain.eip3009 import (
    AUTHORIZATION_CANCELED_TOPIC,
    AUTHORIZATION_STATE,
    AUTHORIZATION_USED_TOPIC,
    Network,
    topic,
    transfers_to,
    word,
)
from gateway.errors import ChainUnavailable

# The first step back from a block at which the nonce is spent, and how much larger each next one
# is. Most nonces were spent a moment ago.
_FIRST_STEP = 8
_STEP_FACTOR = 8


class EventNotMined(ChainUnavailable):
    """State or a log shows the nonce's event, but no canonical receipt does yet."""


class EventNotLogged(ChainUnavailable):
    """No log shows the nonce's event, and no endpoint has the state that would date it."""


@attrs.frozen(kw_only=True)
class NonceEvent:
    """The event that spent a nonce, in a canonical block."""

    receipt: Receipt
    was_used: bool
    """False: it was cancelled."""


async def is_spent(chain: Chain, signed: Authorization, block: Block | int) -> bool:
    """Whether the nonce is used or cancelled at a block; a block number is not pinned."""
    call = AUTHORIZATION_STATE + word(signed.sender) + word(signed.nonce)
    return bool(await chain.call_uint(call, at=block))


async def find_event(
    chain: Chain,
    signed: Authorization,
    network: Network,
    *,
    after: int,
    since: float,
    known: Block,
) -> NonceEvent | None:
    """Return the event that spent a nonce, or None if it is not in a block after `after`.

    The nonce must be spent at the block `known`. `since` (Unix seconds) limits a search of the
    logs. State and logs are only hints: the event comes from the transaction's receipt.

    Raises `EventNotMined` and `EventNotLogged`, which prove nothing, and `ChainUnavailable`.
    """
    try:
        number = await _find_block(chain, signed, after=after, known=known)
    except ChainUnavailable:
        # No endpoint has state that old, or none answers; then the search of the logs fails too.
        first, last = await _range_of(chain, signed, after=after, since=since, known=known)
        event = await _find_in_logs(chain, signed, network, first, last, known)
        if event is None:
            raise EventNotLogged("No log shows yet what spent the nonce.") from None
        return event
    if number is None:
        return None
    event = await _find_in_logs(chain, signed, network, number, number, known)
    if event is None:
        raise EventNotMined("The logs do not show yet what spent the nonce.")
    return event


async def _find_block(
    chain: Chain, signed: Authorization, *, after: int, known: Block
) -> int | None:
    """Return the block that spent the nonce, or None if it is spent at the block `after` already.

    Growing steps back, then a binary search: about twenty calls for an hour of Base.
    """
    spent, step = known.number, _FIRST_STEP
    while spent - step > after:
        if not await is_spent(chain, signed, spent - step):
            unspent = spent - step
            break
        spent, step = spent - step, step * _STEP_FACTOR
    else:
        unspent = max(after, 0)
        if await is_spent(chain, signed, await chain.block_at(unspent)):
            return None
    while spent - unspent > 1:
        middle = (unspent + spent) // 2
        if await is_spent(chain, signed, middle):
            spent = middle
        else:
            unspent = middle
    return spent


async def _range_of(
    chain: Chain, signed: Authorization, *, after: int, since: float, known: Block
) -> tuple[int, int]:
    """Return (first, last) block whose logs may show the event."""
    first = max(await first_block_since(chain, since, head=known), after + 1)
    if known.timestamp <= signed.valid_before:
        return first, known.number
    return first, await last_block_by(chain, signed.valid_before, head=known)


async def _find_in_logs(
    chain: Chain, signed: Authorization, network: Network, first: int, last: int, known: Block
) -> NonceEvent | None:
    """Return the event of the newest log in a range of blocks, or None if there is no log."""
    found = await chain.authorization_logs(
        signed.sender, signed.nonce, from_block=first, to_block=last, known=known
    )
    if not found:
        return None
    tx_hash, _ = found[0]
    receipt = await chain.receipt(tx_hash)
    event = None if receipt is None else _read_event(receipt, signed, network)
    if event is None:
        raise EventNotMined("A log shows an event that no canonical block holds.")
    return event


def _read_event(receipt: Receipt, signed: Authorization, network: Network) -> NonceEvent | None:
    nonce = (topic(signed.sender), signed.nonce)
    for log in receipt.logs:
        if log.address == network.token and log.topics[1:] == nonce:
            if log.topics[0] == AUTHORIZATION_USED_TOPIC:
                return NonceEvent(receipt=receipt, was_used=True)
            if log.topics[0] == AUTHORIZATION_CANCELED_TOPIC:
                return NonceEvent(receipt=receipt, was_used=False)
    return None


def find_transfer(signed: Authorization, receipt: Receipt, network: Network) -> Transfer | None:
    """Return the transfer to the recipient that used this authorization, or None.

    Ignores reverted transactions.
    """
    key = network.authorization_key(signed.sender, signed.nonce)
    transfers = transfers_to(signed.recipient, receipt, network) if receipt.succeeded else []
    return next((found for found in transfers if found.authorization_key == key), None)
