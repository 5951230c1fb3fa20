"""Finds out, before anything is written down, whether a spent nonce was spent to pay us.

A stranger can sign as often as he likes over a nonce that he spent or cancelled long ago. Only
an event that the chain's logs show makes such a signature a payment.
"""

import asyncio

from gateway.contracts import Chain
from gateway.domain import Authorization, Block
from gateway.domain.eip3009 import Network
from gateway.errors import ExecutionError, PaymentRequired
from gateway.payments.authorizations import find_events, find_transfer, is_spent, uses
from gateway.payments.idempotency import SPENT

# One hour: one query of logs. An authorization is valid for ten minutes at most, so whoever
# submits it before us does so well within.
_RECENT_BLOCKS = 1_800
# A nonce that was spent this long ago is in the logs of every endpoint that works.
_INDEXED_BLOCKS = 100
_REORGANISED_BLOCKS = 100  # an event may be found again in an earlier block, by no more than this
_LOOKS = 3
_PAUSE_S = 1.0


async def find_payment(
    chain: Chain, signed: Authorization, network: Network, *, price_units: int, floor: int
) -> int:
    """Return the block from which the event is found that spent the nonce and paid us.

    `floor` is the block up to which transfers may have been used by a forgotten task. Raises
    `PaymentRequired` where the nonce paid for nothing here, `ExecutionError` where the logs do
    not show yet what it paid for, and `ChainUnavailable`. Asks the chain about twenty times at
    most.
    """
    for look in range(_LOOKS):
        if look:
            await asyncio.sleep(_PAUSE_S)
        head = await chain.head()
        first = max(head.number - _RECENT_BLOCKS, floor + 1)
        found = await _look(chain, signed, network, head, first, price_units)
        if found is not None:
            return max(found - _REORGANISED_BLOCKS, floor + 1)
        before = await chain.block_at(max(head.number - _INDEXED_BLOCKS, floor, 0))
        if before.number < head.number and await is_spent(chain, signed, before):
            raise PaymentRequired(SPENT)
    raise ExecutionError(
        "This authorization was used a moment ago, and the chain does not show yet for what. "
        "Nothing more was charged; send the same request again in a few seconds."
    )


async def _look(
    chain: Chain,
    signed: Authorization,
    network: Network,
    head: Block,
    first: int,
    price_units: int,
) -> int | None:
    """Return the block of the transfer; None where the logs do not show what became of it."""
    for tx_hash, was_used in await find_events(chain, signed, from_block=first, known=head):
        if not was_used:
            raise PaymentRequired(SPENT)
        receipt = await chain.receipt(tx_hash)
        if receipt is None or not uses(receipt, signed, network):
            return None
        transfer = find_transfer(signed, receipt, network)
        if transfer is None or transfer.amount_units < price_units:
            raise PaymentRequired(SPENT)
        return receipt.block_number
    return None
