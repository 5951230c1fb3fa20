"""Margins: price and cost of the most expensive request at each price of an endpoint."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from gateway.domain.offers import Endpoint, GenerationRequest

# A price of 1.2 times the cost covers gas and failures.
_ENOUGH = (12, 10)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Sale:
    """The request that costs the operator most at one price."""

    price_units: int
    # None if unknown.
    cost_micros: int | None
    resolution: str | None = None
    pages: int | None = None

    @property
    def is_loss(self) -> bool:
        """Whether the price is below the cost."""
        return self.cost_micros is not None and self.price_units < self.cost_micros

    @property
    def is_enough(self) -> bool:
        """Whether the price is at least 1.2 times the cost. False if the cost is unknown."""
        over, under = _ENOUGH
        return self.cost_micros is not None and self.price_units * under >= self.cost_micros * over

    def __str__(self) -> str:
        counted = {None: "", 1: "1 page"}.get(self.pages, f"{self.pages} pages")
        what = ", ".join(filter(None, (self.resolution, counted))) or "one generation"
        cost = "an unknown sum" if self.cost_micros is None else f"{self.cost_micros / 10**6:g} USD"
        return f"{what}: sold for {self.price_units / 10**6:g} USDC, costs {cost}"


def worst_sales(endpoint: Endpoint) -> Iterator[Sale]:
    """Yield the most expensive request at each price of the endpoint."""
    for resolution in endpoint.resolution.values or (None,):
        for pages, counted in itertools.product(_worst_pages(endpoint), _ends(endpoint)):
            request = GenerationRequest(resolution=resolution, pages=pages, **counted)
            yield Sale(
                price_units=endpoint.price_of(request),
                cost_micros=endpoint.cost_of(request),
                resolution=resolution,
                pages=pages,
            )


def find_losses(endpoint: Endpoint) -> list[Sale]:
    """Return the sales that cost the operator more than the buyer pays."""
    return [sale for sale in worst_sales(endpoint) if sale.is_loss]


def _worst_pages(endpoint: Endpoint) -> Sequence[int | None]:
    """Return the last page count before each price step, and the maximum."""
    if not endpoint.counts_pages:
        return [None]
    begins = {step.min_pages for step in endpoint.price_steps if step.min_pages}
    last = endpoint.max_pages or max(begins, default=1)
    # A price per page grows with the document, so a short document may have the lowest margin.
    if endpoint.price_per_page is not None:
        begins.add(2)
    return sorted({begin - 1 for begin in begins if 1 < begin <= last} | {last})


def _ends(endpoint: Endpoint) -> Sequence[dict[str, Any]]:
    """Return the fields of requests with the fewest and the most units of a price by unit."""
    if endpoint.unit_price is None:
        return [{}]
    unit, most = endpoint.unit_price.unit, endpoint.unit_price.most
    size = most * unit.size
    return [
        {},
        {"prompt": "x" * size} if unit.of == "prompt" else {"measured": {unit.measure: size}},
    ]
