"""What became of an EIP-3009 authorization: its state, its event, its transfer; reads only."""

from gateway.contracts import Chain
from gateway.domain import Authorization, Block, Receipt, Transfer
from gateway.usdc import AUTHORIZATION_STATE, Network, transfers_to, word

_RANGE = 2_000  # blocks a query; public endpoints refuse more
_SPAN = 60_000  # blocks from the first to look at in which the event must be, if there is one


async def is_spent(chain: Chain, signed: Authorization, block: Block) -> bool:
    """Return whether the nonce is used or cancelled at a block."""
    call = AUTHORIZATION_STATE + word(signed.sender) + word(signed.nonce)
    return bool(await chain.call_uint(call, at=block))


async def find_events(
    chain: Chain, signed: Authorization, *, from_block: int, known: Block
) -> list[tuple[str, bool]]:
    """Return (transaction, was it used rather than cancelled) up to a block; at most one."""
    last = min(known.number, from_block + _SPAN)
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


def find_transfer(signed: Authorization, receipt: Receipt, network: Network) -> Transfer | None:
    """Return the transfer to the recipient that used this authorization in a transaction."""
    key = network.authorization_key(signed.sender, signed.nonce)
    transfers = transfers_to(signed.recipient, receipt, network) if receipt.succeeded else []
    return next((found for found in transfers if found.authorization_key == key), None)
