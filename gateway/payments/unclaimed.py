"""Finds transfers into the wallet that no buyer ever used as a proof of payment."""

import time

from gateway.contracts import Chain, Store
from gateway.domain import MinedTransfer
from gateway.payments.cutoff import last_block_before

# Public RPC endpoints refuse queries over more blocks than this.
_MAX_BLOCKS = 2_000


async def unclaimed_transfers(
    chain: Chain, store: Store, wallet: str, *, days: float, hours: float
) -> list[MinedTransfer]:
    """Return transfers to `wallet` of the last `days` that are older than `hours` and paid nothing.

    `wallet` is an address in lower case. Transfers of nothing and of the wallet to itself are left
    out. Only blocks up to the safe head are searched: a listed transfer cannot be reorganised away.
    Raises `ChainUnavailable`.
    """
    head, now = await chain.safe_head(), time.time()
    first = await last_block_before(chain, now - days * 86_400) + 1
    last = min(head.number, await last_block_before(chain, now - hours * 3600))
    found: list[MinedTransfer] = []
    for start in range(first, last + 1, _MAX_BLOCKS):
        end = min(start + _MAX_BLOCKS - 1, last)
        transfers = await chain.transfer_logs(wallet, from_block=start, to_block=end)
        paying = [each for each in transfers if each.amount_units and each.sender != wallet]
        found += await store.refunds.unclaimed(paying)
    return found
