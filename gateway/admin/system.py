"""What a gateway stands on: the machine's clock, the room on its disk, the refund key's ETH."""

import asyncio
import shutil

import attrs

from gateway.admin.desk import Desk
from gateway.contracts import Chain, Clock, Store
from gateway.errors import ChainUnavailable
from gateway.settings import Settings

# Under so many times the floor the disk is low: there is still time to make room.
_LOW_FLOORS = 3
# A warning is not worth a longer wait.
_ANSWER_S = 5.0


@attrs.frozen(kw_only=True)
class DiskState:
    """The room on the disk with the database, in bytes."""

    free_bytes: int
    # Below it nothing is sold (GATEWAY_MIN_FREE_DISK_MB).
    floor_bytes: int
    # The newest write failed for want of room, whatever the floor says.
    is_full: bool

    @property
    def is_low(self) -> bool:
        """Whether the room will soon be under the floor."""
        return self.is_full or self.free_bytes < _LOW_FLOORS * self.floor_bytes


def read_disk(settings: Settings, store: Store) -> DiskState:
    """Return how much room there is in the data folder."""
    return DiskState(
        free_bytes=shutil.disk_usage(settings.data_dir).free,
        floor_bytes=settings.min_free_disk_mb * 10**6,
        is_full=store.is_full,
    )


async def read_clock(chain: Chain, now: Clock) -> float:
    """Return the seconds that this machine's clock is ahead of the newest block; negative: behind.

    Blocks are two seconds apart. Raises `ChainUnavailable`.
    """
    asked_at = now()
    newest = await chain.newest_head()
    return asked_at - newest.timestamp


async def refund_key_problem(desk: Desk) -> str | None:
    """Return why no approved refund can be sent now; None where nothing is known to be wrong."""
    if desk.refunds is None:
        return "GATEWAY_REFUND_KEY is not set."
    try:
        async with asyncio.timeout(_ANSWER_S):
            wei = await desk.chain.gas_balance(desk.refunds.address)
    except (ChainUnavailable, TimeoutError):
        return None
    if wei:
        return None
    network = desk.settings.chain.name
    return f"the refund key {desk.refunds.address} holds no ETH. Send it some ETH on {network}."
