"""The desk: the parts of a gateway that operators' functions use."""

from collections import deque
from typing import Any

import attrs

from gateway.catalog.catalog import Catalog
from gateway.catalog.live_changes import LiveChanges
from gateway.concurrency.shared_answers import SharedAnswers
from gateway.contracts import Chain, Clock
from gateway.errors import SettingsError
from gateway.payments import Refunds
from gateway.settings import Settings
from gateway.store import SqlStore
from gateway_operator.desk.last_seen import LastSeen
from gateway_operator.desk.rpc_watch import RpcWatch
from gateway_operator.desk.running import Running
from gateway_operator.movements import MovementSearch, roles_of, settlement_addresses
from gateway_operator.sql.cached_bars import CachedBars
from gateway_operator.sql.records import OperatorRecords
from gateway_operator.unused_transfers import UnusedSearch

# Seconds that results shared by pages are cached.
_SHARED_S = 2.0
_MAX_SHARED = 64
# A buyer with many payments takes a second to sum, and the page refreshes every few seconds.
_BUYERS_S = 30.0
# Seconds between two measurements of the chain's pace.
_PACE_TTL_S = 600.0
# Free space is sampled every hour for a day, to predict when the disk is full.
_SAMPLE_EVERY_S = 3_600.0
_MAX_SAMPLES = 24
# A shorter span would mistake a burst of large files for the usual pace.
_MIN_SPAN_S = 12 * 3_600.0


class DiskPace:
    """Samples of free space."""

    def __init__(self) -> None:
        # Unix seconds and bytes, oldest first.
        self._samples: deque[tuple[float, int]] = deque(maxlen=_MAX_SAMPLES)

    def note(self, now: float, free: int) -> None:
        """Add a sample, at most once an hour."""
        if not self._samples or now - self._samples[-1][0] >= _SAMPLE_EVERY_S:
            self._samples.append((now, free))

    def lasts_s(self, now: float, free: int, floor: int) -> float | None:
        """Return the seconds until only `floor` bytes are free at this pace.

        None if the pace is not known yet, or if usage does not grow.
        """
        if not self._samples or now - self._samples[0][0] < _MIN_SPAN_S:
            return None
        at, was_free = self._samples[0]
        used = was_free - free
        return None if used <= 0 else max(0, free - floor) * (now - at) / used


@attrs.frozen(kw_only=True)
class Desk:
    """The open store and chain, the catalog, and the sender of refunds."""

    settings: Settings
    store: SqlStore
    chain: Chain
    now: Clock

    # None without a refund key.
    refunds: Refunds | None

    # Both None in a command without plugins.
    _catalog: Catalog | None
    _changes: LiveChanges | None = None

    # None in a command.
    running: Running | None = None

    records: OperatorRecords = attrs.field(init=False)

    # Values of the chain, with their age.
    last_seen: LastSeen = attrs.field(init=False)

    # The chain's pace, which changes once in years.
    last_paces: LastSeen = attrs.field(init=False)

    # Failing RPC endpoints, and the pace at which the disk fills.
    rpc_watch: RpcWatch = attrs.field(init=False, factory=RpcWatch)
    disk_pace: DiskPace = attrs.field(init=False, factory=DiskPace)

    # Results shared by pages, by name.
    shared: SharedAnswers[Any] = attrs.field(init=False)

    # Sums of a buyer's payments, by payer.
    buyers: SharedAnswers[Any] = attrs.field(init=False)

    # Sums of sales by bar.
    cached_bars: CachedBars = attrs.field(init=False, factory=CachedBars)
    # Of the period before, because each cache keeps one period of a length.
    cached_before: CachedBars = attrs.field(init=False, factory=CachedBars)

    # Finds unused transfers.
    unused: UnusedSearch = attrs.field(init=False)

    # Finds movements of USDC without a record.
    movements: MovementSearch = attrs.field(init=False)

    @movements.default
    def _make_movements(self) -> MovementSearch:
        return MovementSearch(self.chain, self.store, self.roles, self.now)

    @unused.default
    def _make_unused(self) -> UnusedSearch:
        return UnusedSearch(self.chain, self.store, self.settings.wallet_key, self.now)

    @records.default
    def _make_records(self) -> OperatorRecords:
        return OperatorRecords(self.store)

    @last_seen.default
    def _make_last_seen(self) -> LastSeen:
        return LastSeen(self.now)

    @last_paces.default
    def _make_last_paces(self) -> LastSeen:
        return LastSeen(self.now, ttl_s=_PACE_TTL_S)

    @shared.default
    def _make_shared(self) -> SharedAnswers[Any]:
        return SharedAnswers(self.now, ttl_s=_SHARED_S, most=_MAX_SHARED)

    @buyers.default
    def _make_buyers(self) -> SharedAnswers[Any]:
        return SharedAnswers(self.now, ttl_s=_BUYERS_S, most=_MAX_SHARED)

    def roles(self) -> dict[str, str]:
        """Return the gateway's addresses in lower case, each with its role."""
        settlement = (
            settlement_addresses(self.settings)
            if self.running is None
            else self.running.settlement_keys()
        )
        return roles_of(
            self.settings, settlement, None if self.refunds is None else self.refunds.address
        )

    @property
    def catalog(self) -> Catalog:
        """The offers. Raises `RuntimeError` if the desk was opened without them."""
        if self._catalog is None:
            raise RuntimeError("this desk was opened without the catalog")
        return self._catalog

    async def apply_changes(self) -> None:
        """Apply operators' changes, also by other processes, to the catalog."""
        if self._changes is not None:
            await self._changes.poll()

    def sender(self) -> Refunds:
        """Return the sender of refunds; raises `SettingsError` without a refund key."""
        if self.refunds is None:
            raise SettingsError(
                "GATEWAY_REFUND_KEY is not set. It is the private key that sends refunds: it "
                "holds USDC for them and a little ETH."
            )
        return self.refunds
