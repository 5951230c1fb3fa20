"""Whether the gateway may sell now."""

from collections.abc import Callable

import attrs

from gateway.catalog.catalog import Catalog
from gateway.errors import ExecutionError, NobodyWorks, Restarting, SellsNothing
from gateway.settings import Settings
from gateway.store.disk import DiskState, read_disk

# Anybody may ask for the checks. Questions cost at most one round of checks in this time.
KEPT_S = 5.0


@attrs.define
class Readiness:
    """Whether anything may be sold now; routes and payments share it."""

    settings: Settings
    catalog: Catalog
    # Whether a machine works on what is sold: not always this one.
    has_workers: Callable[[], bool] = lambda: True
    # Whether the newest write of the database found no room.
    is_full: Callable[[], bool] = lambda: False
    # Nothing is sold any more; everything else goes on.
    is_draining: bool = False
    # What had begun has ended or been put down: requests that wait are answered now.
    is_drained: bool = False

    def read_disk(self) -> DiskState:
        """Return how much room the disk has."""
        return read_disk(self.settings, is_full=self.is_full())

    def check_serving(self, slug: str) -> None:
        """Raise `ExecutionError` where the gateway or the endpoint's provider cannot serve.

        Where the gateway is stopping, that is a `Restarting`.
        """
        if problem := self.find_problem(slug):
            raise problem

    def find_problem(self, slug: str | None = None) -> ExecutionError | None:
        """Return why this machine sells nothing, or not the endpoint with this slug; else None."""
        if self.is_draining:
            return Restarting()
        if "web" not in self.settings.roles:
            return SellsNothing()
        if not self.has_workers():
            return NobodyWorks()
        if self.read_disk().problem is not None:
            return ExecutionError(
                "The gateway's disk is nearly full; nothing was charged. Try again later."
            )
        return None if slug is None else self._find_problem_of(slug)

    def _find_problem_of(self, slug: str) -> ExecutionError | None:
        registered = self.catalog[slug]
        if registered.is_paused:
            return ExecutionError("This endpoint is paused; nothing was charged. Try again later.")
        if registered.open_circuit is not None:
            return ExecutionError(
                "This endpoint's provider does not work now; nothing was charged. Try again later."
            )
        return None
