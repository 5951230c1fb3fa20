"""Finds the event that spent the nonce of an authorization, by state or else by logs.

The token's state shows in which block a nonce was spent, whatever the age and pace of the blocks.
That block's logs or receipts name the transaction. Without old state, or if the state is wrong, a
search of the logs is left. Logs may lag behind state, so a missing log proves nothing.
"""

from collections.abc import Awaitable

import attrs

from gateway.chain.block_times import first_block_since
from gateway.chain.retries import StatePruned
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


@attrs.frozen(kw_only=True, eq=False, repr=False)
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
    is_patient: bool = True,
) -> NonceEvent | None:
    """Return the event that spent a nonce, or None if it is not in a block after `after`.

    The nonce must be spent at the block `known`. A search of the logs begins at `since` (Unix
    seconds), and takes few queries unless it is patient. State and logs are only hints: the event
    comes from the transaction's receipt.

    Raises `EventNotMined` if state or a log shows an event that is not readable yet,
    `EventNotLogged` if no endpoint shows a log, and `ChainUnavailable`.
    """
    number, is_old = None, False
    try:
        number = await _find_block(chain, signed, after=after, known=known)
        is_old = number is None
    except ChainUnavailable:
        # The search of the logs fails too if no endpoint answers.
        number = None
    if number is not None and (found := await _read_block(chain, signed, number, known)):
        return await _read_event(chain, signed, network, found)
    # Some endpoints answer with their newest state, or with none, whatever block is asked for.
    first = max(await first_block_since(chain, since, head=known), after + 1)
    found = await _search_logs(chain, signed, first, known, is_patient=is_patient)
    if found is not None:
        return await _read_event(chain, signed, network, found)
    if number is not None:
        raise EventNotMined("No log shows yet what spent the nonce.")
    if not is_old:
        raise EventNotLogged("No log shows what spent the nonce.")
    return None


async def _find_block(
    chain: Chain, signed: Authorization, *, after: int, known: Block
) -> int | None:
    """Return the block that spent the nonce, or None if it is spent at the block `after` already.

    Growing steps back, then a binary search: about twenty calls for an hour of Base. Raises
    `StatePruned` if no endpoint keeps the state before that block, and `ChainUnavailable`.
    """
    after = max(after, 0)
    # The nonce is unspent at `low`, or that state is gone.
    spent, low, is_unspent, step = known.number, -1, False, _FIRST_STEP
    while spent > after and spent - low > 1:
        probe = (low + spent) // 2 if low >= 0 else max(spent - step, after)
        try:
            if await is_spent(chain, signed, probe):
                spent, step = probe, step * _STEP_FACTOR
            else:
                low, is_unspent = probe, True
        except StatePruned:
            low, is_unspent = probe, False
    if spent <= after:
        return None
    if not is_unspent:
        raise StatePruned("No RPC endpoint keeps the state from before the nonce was spent.")
    return spent


async def _read_block(chain: Chain, signed: Authorization, number: int, known: Block) -> str | None:
    """Return the hash of the transaction that spent the nonce in a block, or None.

    Its receipts show it even while the index of logs lags, but few endpoints offer them.
    """
    sender, nonce = signed.sender, signed.nonce
    logs = chain.authorization_logs(sender, nonce, from_block=number, to_block=number, known=known)
    return await _hash_of(logs) or await _hash_of(
        chain.authorization_receipts(sender, nonce, number=number)
    )


async def _hash_of(reading: Awaitable[list[tuple[str, bool]]]) -> str | None:
    """Return the transaction's hash of the first event, or None if there is no answer."""
    try:
        found = await reading
    except ChainUnavailable:
        return None
    return found[0][0] if found else None


async def _search_logs(
    chain: Chain, signed: Authorization, first: int, known: Block, *, is_patient: bool
) -> str | None:
    """Return the hash of the transaction in the newest log since a block, or None."""
    found = await chain.authorization_logs(
        signed.sender,
        signed.nonce,
        from_block=first,
        to_block=known.number,
        known=known,
        is_patient=is_patient,
    )
    return found[0][0] if found else None


async def _read_event(
    chain: Chain, signed: Authorization, network: Network, tx_hash: str
) -> NonceEvent:
    """Return the event in a transaction's receipt; raises `EventNotMined` if it has none."""
    receipt = await chain.receipt(tx_hash)
    event = None if receipt is None else event_in(receipt, signed, network)
    if event is None:
        raise EventNotMined("A log shows an event that no canonical block holds.")
    return event


def event_in(receipt: Receipt, signed: Authorization, network: Network) -> NonceEvent | None:
    """Return the event of the nonce in a receipt, or None."""
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
