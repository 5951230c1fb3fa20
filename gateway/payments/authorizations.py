"""Reads from the chain what became of an EIP-3009 authorization: state, event, transfer."""

from gateway.contracts import Chain
from gateway.domain import Authorization, Block, Receipt, Transfer
from gateway.domain.eip3009 import (
    AUTHORIZATION_STATE,
    AUTHORIZATION_USED_TOPIC,
    Network,
    topic,
    transfers_to,
    word,
)

# Blocks in one query. Public endpoints refuse more.
_RANGE = 2_000

# The event of an authorization that expires must be within this many blocks (33 hours).
SPAN = 60_000


async def is_spent(chain: Chain, signed: Authorization, block: Block) -> bool:
    """Return whether the nonce is used or cancelled at a block."""
    call = AUTHORIZATION_STATE + word(signed.sender) + word(signed.nonce)
    return bool(await chain.call_uint(call, at=block))


async def find_events(
    chain: Chain, signed: Authorization, *, from_block: int, known: Block, span: int | None = None
) -> list[tuple[str, bool]]:
    """Return (transaction hash, whether the nonce was used rather than cancelled), at most one.

    The search ends at the block `known`, and covers at most `span` blocks. Pass no `span` for an
    authorization that does not expire: its event may be in any block.
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
            return found
    return []


def uses(receipt: Receipt, signed: Authorization, network: Network) -> bool:
    """Return whether this transaction, as it is mined now, used the nonce."""
    event = (AUTHORIZATION_USED_TOPIC, topic(signed.sender), signed.nonce)
    return any(log.address == network.token and log.topics == event for log in receipt.logs)


def find_transfer(signed: Authorization, receipt: Receipt, network: Network) -> Transfer | None:
    """Return the transfer to the recipient that used this authorization, or None.

    A transaction that reverted holds no transfer.
    """
    key = network.authorization_key(signed.sender, signed.nonce)
    transfers = transfers_to(signed.recipient, receipt, network) if receipt.succeeded else []
    return next((found for found in transfers if found.authorization_key == key), None)
