"""The list of USDC that moved without a record."""

from collections.abc import Sequence

import attrs

from gateway.errors import NotFound
from gateway_operator.desk.desk import Desk
from gateway_operator.movements import OpenMovement
from gateway_operator.sql import seen_transfers

# Seconds to wait for the chain.
_TIMEOUT_S = 2.0


@attrs.frozen(kw_only=True)
class MovedPage:
    """Movements that no record explains, as of the last search, the urgent ones first."""

    at: float
    transfers: Sequence[OpenMovement]
    # When the last search ended; None: not yet.
    searched_at: float | None
    # Whether all blocks of seven days were read.
    is_complete: bool
    problem: str | None


async def read_moved(desk: Desk, *, timeout_s: float = _TIMEOUT_S) -> MovedPage:
    """Return the open movements. A later page shows what a long search finds."""
    search = desk.movements
    await search.refresh(timeout_s)
    return MovedPage(
        at=desk.now(),
        transfers=sorted(
            await read_unmarked(desk), key=lambda one: one.movement.kind != "unbooked"
        ),
        searched_at=search.searched_at,
        is_complete=search.is_complete and search.searched_at is not None,
        problem=search.problem,
    )


async def read_unmarked(desk: Desk) -> list[OpenMovement]:
    """Return the movements of the last search that no operator has marked since."""
    await desk.movements.load()
    known = desk.movements.known
    hashes = {one.movement.transfer.tx_hash for one in known}
    seen = await desk.store.sum(seen_transfers.find, hashes) if hashes else {}
    return [one for one in known if not one.movement.is_explained_by(seen.get(one.movement.place))]


async def find_moved(desk: Desk, tx_hash: str, log_index: int) -> OpenMovement:
    """Return one movement; raises `NotFound`."""
    for one in (await read_moved(desk)).transfers:
        if one.movement.place == (tx_hash, log_index):
            return one
    raise NotFound("This transfer has a record since, or is older than 7 days.")
