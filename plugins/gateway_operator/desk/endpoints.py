"""Endpoints with their cost, sales and state."""

from collections.abc import Sequence
from typing import Literal

import attrs

from gateway.errors import NotFound
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.facts import EndpointFacts
from gateway_operator.desk.overview import DEFAULT_PERIOD, EndpointSums, Selling, read_overview

EndpointState = Literal["on sale", "paused", "off sale", "switched off", "retired"]
# Reported by the vendor, set by the operator, or from the adapter's table of models.
CostSource = Literal["told", "set", "table"]


@attrs.frozen(kw_only=True)
class EndpointRow:
    """One endpoint with its sales of a period. Money is in units of 10⁻⁶."""

    facts: EndpointFacts
    sums: EndpointSums
    state: EndpointState
    # The mean of the period if results have a cost; None: not known.
    cost_micros: int | None
    cost_source: CostSource | None
    running: int

    def matches(self, typed: str) -> bool:
        """Whether every typed word is in its name, provider, model or state."""
        facts = self.facts
        text = f"{facts.slug} {facts.provider} {facts.model} {self.state}".lower()
        return all(word in text for word in typed.lower().split())

    @property
    def margin_units(self) -> int | None:
        """The margin of one sale before gas and failures; None: not known."""
        return None if self.cost_micros is None else self.facts.price_units - self.cost_micros

    @property
    def margin_share(self) -> float | None:
        """The margin as a share of the price."""
        return None if self.margin_units is None else self.margin_units / self.facts.price_units


@attrs.frozen(kw_only=True)
class Endpoints:
    """The data of the page."""

    # Unix seconds.
    at: float
    period_name: str
    rows: Sequence[EndpointRow]
    # As the overview says it.
    selling: Selling


async def read_endpoints(desk: Desk, period_name: str = DEFAULT_PERIOD) -> Endpoints:
    """Return every registered endpoint; raises `ValidationError` for an unknown period."""
    found = await read_overview(desk, period_name)
    rows = [
        _describe(one.facts, one, found.facts.running_tasks.get(one.slug, 0))
        for one in found.endpoints
        if one.facts is not None
    ]
    return Endpoints(at=found.facts.at, period_name=period_name, rows=rows, selling=found.selling)


async def find_endpoint(desk: Desk, slug: str) -> EndpointRow:
    """Return one endpoint with its sales of the last day; raises `NotFound`."""
    found = await read_endpoints(desk)
    row = next((one for one in found.rows if one.facts.slug == slug), None)
    if row is None:
        raise NotFound("There is no such endpoint. The page Endpoints lists them.")
    return row


def _describe(facts: EndpointFacts, sums: EndpointSums, running: int) -> EndpointRow:
    cost, source = _find_cost(facts, sums)
    return EndpointRow(
        facts=facts,
        sums=sums,
        state=_find_state(facts),
        cost_micros=cost,
        cost_source=source,
        running=running,
    )


def _find_state(facts: EndpointFacts) -> EndpointState:
    if facts.is_switched_off:
        return "switched off"
    if facts.is_paused:
        return "paused"
    if facts.is_retired:
        return "retired"
    return "on sale" if facts.sells else "off sale"


def _find_cost(facts: EndpointFacts, sums: EndpointSums) -> tuple[int | None, CostSource | None]:
    if facts.cost_override is not None and facts.cost_override.value is not None:
        return int(facts.cost_override.value), "set"
    if sums.costed and facts.cost_micros is None:
        return round(sums.cost_micros / sums.costed), "told"
    return facts.cost_micros, None if facts.cost_micros is None else "table"
