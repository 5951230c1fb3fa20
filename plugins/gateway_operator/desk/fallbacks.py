"""Endpoints' fallbacks, as pages and conditions show them."""

import attrs

from gateway.catalog.catalog import Catalog
from gateway.catalog.fallbacks import find_misfit, has_unknown_cost
from gateway.catalog.registered import Registered


@attrs.frozen(kw_only=True)
class FallbackFacts:
    """The fallback of an endpoint."""

    slug: str
    # Why it cannot make orders now, as the end of a sentence; empty: it can.
    problem: str
    # Whether it makes the endpoint's new orders now, because the vendor fails.
    is_used: bool
    # Why it may not help, or may lose money; empty: nothing is known against it.
    doubts: str = ""


def describe_fallback(catalog: Catalog, one: Registered) -> FallbackFacts | None:
    """Return the fallback of an endpoint, or None if it has none."""
    chosen = one.change.fallback if one.change is not None else None
    if chosen is None:
        return None
    is_out = not one.works and catalog.is_enabled(one.endpoint.slug)
    used = is_out and one.fallback is not None
    maker = catalog.find(chosen)
    return FallbackFacts(
        slug=chosen,
        problem=_find_problem(catalog, one, chosen),
        is_used=used,
        doubts="" if maker is None else find_doubts(one, maker),
    )


def find_doubts(one: Registered, maker: Registered) -> str:
    """Return what an operator should know of a fallback that fits, as sentences; empty: nothing."""
    slug, doubts = maker.endpoint.slug, []
    if has_unknown_cost(one.endpoint, maker.endpoint):
        doubts.append(f"The cost of {slug} is not known: it may be above the price.")
    if maker.upstream is one.upstream:
        doubts.append(f"{slug} has the same vendor's account, so both may fail at once.")
    return " ".join(doubts)


def _find_problem(catalog: Catalog, one: Registered, chosen: str) -> str:
    maker = catalog.find(chosen)
    if maker is None:
        return "no plugin registers it"
    if not catalog.is_enabled(chosen):
        return "it is switched off or retired"
    if maker.unchecked:
        return "nothing checks its results"
    if misfit := find_misfit(one.endpoint, maker.endpoint):
        return misfit
    return "" if maker.works else "it is off sale itself"
