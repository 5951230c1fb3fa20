"""Reads from the chain what became of an EIP-3009 authorization: state, event, transfer."""

import attrs

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

# Blocks in one query. Public endpoints refuse more.
_RANGE = 2_000

# The event of an authorization that expires must be within this many blocks (33 hours).
SPAN = 60_000


class EventNotMined(ChainUnavailable):
    """A log shows an event of a nonce, and no canonical block holds its transaction yet."""


@attrs.frozen(kw_only=True)
class NonceEvent:
    """What spent a nonce, in a canonical block."""

    receipt: Receipt
    was_used: bool
    """False: it was cancelled."""


async def is_spent(chain: Chain, signed: Authorization, block: Block) -> bool:
    """Return whether the nonce is used or cancelled at a block."""
    call = AUTHORIZATION_STATE + word(signed.sender) + word(signed.nonce)
    return bool(await chain.call_uint(call, at=block))


async def find_event(
    chain: Chain,
    signed: Authorization,
    network: Network,
    *,
    from_block: int,
    known: Block,
    span: int | None = None,
) -> NonceEvent | None:
    """Return the event that spent a nonce, or None if no log shows it.

    The search ends at the block `known`, and covers at most `span` blocks. Pass no `span` for an
    authorization that does not expire: its event may be in any block. A log says only where to
    look: raises `EventNotMined` if the transaction, as it is mined now, does not hold the event.
    """
    last = known.number if span is None else min(known.number, from_block + span)
    for first in range(from_block, last + 1, _RANGE):
        found = await chain.authorization_logs(
            signed.sender,
            signed.nonce,
            from_block=first,
            to_block=min(first + _RANGE - 1, last),
            known=known,
        )
        if found:
            tx_hash, _ = found[0]
            receipt = await chain.receipt(tx_hash)
            event = None if receipt is None else _read_event(receipt, signed, network)
            if event is None:
                raise EventNotMined("A log shows an event that no canonical block holds.")
            return event
    return None


def _read_event(receipt: Receipt, signed: Authorization, network: Network) -> NonceEvent | None:
    """Return what this transaction did to the nonce."""
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

    A transaction that reverted holds no transfer.
    """
    key = network.authorization_key(signed.sender, signed.nonce)
    transfers = transfers_to(signed.recipient, receipt, network) if receipt.succeeded else []
    return next((found for found in transfers if found.authorization_key == key), None)
