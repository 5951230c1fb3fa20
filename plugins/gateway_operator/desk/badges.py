"""Counters in every page's navigation bar."""

from collections.abc import Mapping
from functools import partial

import attrs

from gateway_operator.desk.desk import Desk
from gateway_operator.sql import current_state


@attrs.frozen(kw_only=True)
class Badges:
    """The counters of all pages."""

    # By the page's key: number and label.
    counts: Mapping[str, tuple[int, str]] = attrs.field(factory=dict)
    # Shown in the window title.
    urgent: bool = False

    def of(self, page: str) -> int:
        """Return the number for a page."""
        return self.counts.get(page, (0, ""))[0]

    def word(self, page: str) -> str:
        """Return the label of a page's number, such as `to decide`."""
        return self.counts.get(page, (0, ""))[1]


async def read_badges(desk: Desk) -> Badges:
    """Return the counters, cached for two seconds. Does not call the chain."""
    badges: Badges = await desk.shared.get("badges", lambda: _read_badges(desk))
    return badges


async def _read_badges(desk: Desk) -> Badges:
    sum_owed = partial(current_state.owed_now, is_automatic=desk.settings.refunds_automatically)
    owed = await desk.store.sum(sum_owed)
    off = sum(
        (one.open_circuit is not None or bool(one.obstacle)) and one.fallback is None
        for one in desk.catalog.everything()
        if desk.catalog.is_enabled(one.endpoint.slug)
    )
    return Badges(
        counts={
            "refunds": (owed.undecided + owed.failed, "to decide"),
            "endpoints": (off, "off sale"),
        },
        urgent=bool(owed.failed or off),
    )
