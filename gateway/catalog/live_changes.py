"""Operators' changes of endpoints, applied while the gateway runs."""

import structlog

from gateway.catalog.catalog import Catalog
from gateway.catalog.pricing import prices_of
from gateway.catalog.registered import Registered
from gateway.contracts import Clock
from gateway.domain.costs import find_losses
from gateway.store import SqlStore
from gateway.store.endpoint_changes import changes_after

_log = structlog.get_logger()


class LiveChanges:
    """Reads the changes from the store, and applies them to the catalogue."""

    def __init__(self, catalog: Catalog, store: SqlStore, now: Clock) -> None:
        self._catalog = catalog
        self._store = store
        self._now = now
        # The number of the newest change that was applied.
        self._known = -1

    async def poll(self) -> None:
        """Apply the changes since the last read."""
        found = await self._store.read(changes_after, self._known, self._now())
        if found is None:
            return
        number, changes = found
        before = {one.endpoint.slug: one for one in self._catalog.everything()}
        self._catalog.change(changes)
        self._known = number
        for registered in self._catalog.everything():
            _log_change(before[registered.endpoint.slug], registered)


def _log_change(before: Registered, after: Registered) -> None:
    slug = after.endpoint.slug
    if after.is_paused != before.is_paused:
        event = "endpoint.paused" if after.is_paused else "endpoint.resumed"
        _log.warning(event, slug=slug)
    if prices_of(after.endpoint) != prices_of(before.endpoint):
        _log.warning("endpoint.priced", slug=slug, price_units=after.endpoint.price_units)
    losses = find_losses(after.endpoint)
    if losses and after.endpoint != before.endpoint:
        _log.warning("endpoint.below_cost", slug=slug, sold=str(losses[0]))
