"""Prices as the form shows them: on each choice, by pages, and the total of the chosen options."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import attrs

from gateway.domain import Endpoint, GenerationRequest
from gateway.domain.description import price_range
from gateway.web import wire


@attrs.frozen(kw_only=True)
class PageStep:
    """The price of documents with this number of pages."""

    pages: str
    # USDC, such as "0.03".
    price: str


def amount(units: int) -> str:
    """Return an amount in USDC as people write it: 0.60, 0.005, or 2."""
    whole, _, decimals = wire.decimal(units).partition(".")
    return f"{whole}.{decimals:0<2}" if decimals else whole


def prices_of_choices(endpoint: Endpoint) -> Mapping[str, Mapping[str, str]]:
    """Return the price of each value, in USDC, of the fields that change it.

    Only the resolution changes a price (`PriceStep`), so there is one such field at most.
    """
    units = {
        value: endpoint.price_of(GenerationRequest(resolution=value))
        for value in endpoint.resolution.values
    }
    if len(set(units.values())) < 2:  # noqa: PLR2004 - all the same
        return {}
    return {"resolution": {value: amount(price) for value, price in units.items()}}


def total_of_defaults(endpoint: Endpoint) -> str:
    """Return the total before anything is chosen, in USDC: a range if pages decide."""
    lowest, highest = price_range(endpoint)
    is_counted = endpoint.prices_pages or endpoint.unit_price is not None
    if is_counted and highest > lowest:
        return f"{amount(lowest)} to {amount(highest)}"
    return amount(endpoint.price_of(_defaults(endpoint)))


def page_steps(endpoint: Endpoint) -> Sequence[PageStep]:
    """Return the price by pages or other units; empty if it does not depend on them."""
    if endpoint.unit_price is not None:
        named = f"each {endpoint.unit_price.unit.name}"
        return _price_of_each(endpoint, named, endpoint.unit_price.price_units)
    if not endpoint.prices_pages:
        return []
    if endpoint.price_per_page is not None:
        return _price_of_each(endpoint, "each page", endpoint.price_per_page)
    begins = sorted({step.min_pages for step in endpoint.price_steps if step.min_pages} | {1})
    ends = [*(later - 1 for _, later in pairwise(begins)), endpoint.max_pages]
    return [
        PageStep(pages=_name_pages(begin, end), price=_price_at(endpoint, begin))
        for begin, end in zip(begins, ends, strict=True)
    ]


def _price_of_each(endpoint: Endpoint, named: str, units: int) -> Sequence[PageStep]:
    least = PageStep(pages="at least", price=amount(endpoint.price_units))
    return [PageStep(pages=named, price=amount(units)), least]


def _price_at(endpoint: Endpoint, pages: int) -> str:
    return amount(endpoint.price_of(attrs.evolve(_defaults(endpoint), pages=pages)))


def _name_pages(begin: int, end: int | None) -> str:
    if end is None:
        return f"from {begin} pages"
    return f"{begin} page{'s' if end > 1 else ''}" if begin == end else f"{begin} to {end} pages"


def _defaults(endpoint: Endpoint) -> GenerationRequest:
    return GenerationRequest(resolution=endpoint.resolution.default)
