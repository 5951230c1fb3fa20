"""Whether the gateway may sell now."""

import time

import attrs

from gateway.catalog.catalog import Catalog
from gateway.catalog.registered import Registered
from gateway.errors import ExecutionError, NoWorkers, Restarting, WrongNode
from gateway.settings import Settings
from gateway.store import SqlStore
from gateway.store.disk import DiskState, read_disk

# Results of checks are shared for this many seconds, because any client may request them.
TTL_S = 5.0
# Prices need the state of the disk, which is read at most once in this many seconds. Payments read
# it each time.
_DISK_S = 1.0
_CHANGED = "This endpoint's provider has just changed. Try again."


@attrs.define(eq=False, repr=False)
class Readiness:
    """Whether anything may be sold now. Routes and payments share it."""

    settings: Settings
    catalog: Catalog
    store: SqlStore
    # Sales have stopped; everything else goes on.
    is_draining: bool = False
    # Draining has ended, so waiting requests are answered now.
    is_drained: bool = False
    # The last state of the disk, when it was read, and by which settings.
    _disk: DiskState | None = attrs.field(default=None, init=False)
    _disk_at: float = attrs.field(default=0.0, init=False)
    _disk_basis: tuple[int, bool] | None = attrs.field(default=None, init=False)
    # Whether this machine has the role `web`.
    _sells: bool = attrs.field(init=False)

    @_sells.default
    def _find_role(self) -> bool:
        return "web" in self.settings.roles

    def read_disk(self, *, is_fresh: bool = False) -> DiskState:
        """Return the state of the disk, at most a second old unless `is_fresh`."""
        now, is_full = time.monotonic(), self.store.is_full
        # A fast test: `Settings` compares all its fields.
        basis = (id(self.settings), is_full)
        is_current = self._disk_basis == basis and now - self._disk_at < _DISK_S
        if self._disk is None or is_fresh or not is_current:
            self._disk = read_disk(self.settings, is_full=is_full)
            self._disk_at, self._disk_basis = now, basis
        return self._disk

    def check_serving(self, slug: str, maker: str | None = None) -> None:
        """Raise `ExecutionError` if the gateway or the endpoint's provider cannot serve a payment.

        `maker` is the slug of the endpoint whose provider has checked the request, if any: only
        that one may make it. While the gateway drains, this is its subclass `Restarting`.
        """
        self.read_disk(is_fresh=True)
        registered = self.catalog.payable(slug)
        if problem := self.find_problem(slug) or _find_problem_of_maker(registered, maker):
            raise problem

    def check_maker(self, slug: str, maker: str) -> None:
        """Raise `ExecutionError` if the endpoint `maker` would not make an order any more."""
        registered = self.catalog.find(slug)
        if registered is not None and (problem := _find_problem_of_maker(registered, maker)):
            raise problem

    def find_problem(self, slug: str | None = None) -> ExecutionError | None:
        """Return why this machine sells nothing, or not this endpoint; None if it sells."""
        if self.is_draining:
            return Restarting()
        if not self._sells:
            return WrongNode()
        # Workers may run on other machines.
        if not self.store.nodes.has_workers:
            return NoWorkers()
        if self.read_disk().problem is not None:
            return ExecutionError("The gateway's disk is nearly full. Try again later.")
        return None if slug is None else self._find_problem_of(slug)

    def _find_problem_of(self, slug: str) -> ExecutionError | None:
        registered = self.catalog.payable(slug)
        if registered.unchecked:
            return ExecutionError("This endpoint's results cannot be checked. Try again later.")
        if registered.held:
            return ExecutionError("This endpoint's settings are being repaired. Try again later.")
        if registered.is_paused:
            return ExecutionError("This endpoint is paused. Try again later.")
        if not registered.sells_now:
            return ExecutionError("This endpoint's provider does not work now. Try again later.")
        return None


def _find_problem_of_maker(registered: Registered, maker: str | None) -> ExecutionError | None:
    now = (registered.fallback or registered).endpoint.slug
    return None if maker in (None, now) else ExecutionError(_CHANGED)
