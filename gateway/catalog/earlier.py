"""Earlier offers: what buyers were quoted before a change, and which requests may still pay it."""

import math

import attrs

from gateway.catalog.pricing import at_price, prices_of
from gateway.catalog.registered import Registered
from gateway.contracts import Clock
from gateway.contracts.store import EndpointChange
from gateway.domain import QUOTE_LIFE_S, Endpoint, GenerationRequest

# Endpoints at earlier prices, each with the end of its quotes (Unix seconds).
Quoted = tuple[tuple[Endpoint, float], ...]


@attrs.define(eq=False, repr=False)
class EarlierOffers:
    """What reloads have replaced, as long as its quotes live."""

    _now: Clock
    _quoted: dict[str, Quoted] = attrs.field(factory=dict, init=False)
    # When a reload last replaced an endpoint, by slug.
    _replaced_at: dict[str, float] = attrs.field(factory=dict, init=False)

    def note(self, old: Registered, sold: Endpoint) -> None:
        """Note an endpoint that a reload replaces by `sold`, with what was quoted before it."""
        slug, now = old.endpoint.slug, self._now()
        quoted = [(one, until) for one, until in old.earlier if until > now]
        until = old.honoured_until if old.is_removed else now + QUOTE_LIFE_S
        if until > now and _differ(old.endpoint, sold):
            quoted.append((old.endpoint, until))
        self._quoted[slug], self._replaced_at[slug] = tuple(quoted), now

    def of(self, configured: Registered, change: EndpointChange | None) -> Quoted:
        """Return an endpoint's earlier offers: those of live changes, and those of reloads.

        A live change from before the last reload had the prices of the file of its time, which
        `note` has noted.
        """
        slug = configured.endpoint.slug
        since = self._replaced_at.get(slug, -math.inf)
        changed = tuple(
            (at_price(configured.endpoint, one), one.good_until)
            for one in (() if change is None else change.earlier_prices)
            if one.good_until - QUOTE_LIFE_S > since
        )
        return (*changed, *self._quoted.get(slug, ()))


def _differ(old: Endpoint, new: Endpoint) -> bool:
    return prices_of(old) != prices_of(new) or old.unit_price != new.unit_price


def honours(old: Endpoint, new: Endpoint, request: GenerationRequest) -> bool:
    """Whether a request to `new` may pay the price of an earlier offer.

    It must be one that the earlier offer took, and measured as that one counts.
    """
    before, now = old.unit_price, new.unit_price
    file_unit = before.unit if before is not None and before.unit.of == "file" else None
    is_measured = file_unit is None or (now is not None and now.unit == file_unit)
    if not is_measured or (old.prices_pages and not new.counts_pages):
        return False
    most = math.inf if before is None else before.most * before.unit.size
    return (
        offers_choices(old, request)
        and len(request.prompt) <= old.max_prompt_chars
        and (request.pages or 0) <= (old.max_pages or math.inf)
        and (before is None or request.measure(before.unit) <= most)
    )


def offers_choices(endpoint: Endpoint, request: GenerationRequest) -> bool:
    """Whether an endpoint offers the ratio, resolution and kind of file of a checked request."""
    file = request.attachment
    return (
        request.aspect_ratio in (None, *endpoint.aspect_ratio.values)
        and request.resolution in (None, *endpoint.resolution.values)
        and (file is None or file.extension in endpoint.file_extensions)
    )
