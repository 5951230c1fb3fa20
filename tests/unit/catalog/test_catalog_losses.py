"""A price below the cost stops the start, unless the operator declares it as intended."""

import attrs
import pytest
import structlog

from gateway import Choice, PriceStep, SettingsError
from gateway.catalog.catalog import Catalog
from gateway.contracts.store import EndpointChange
from gateway.domain.costs import worst_sales
from gateway.settings import EndpointOverride
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider

PICTURE = attrs.evolve(
    ENDPOINT,
    resolution=Choice(values=("1K", "2K"), default="1K"),
    price_units=20_000,
    price_steps=(PriceStep(price_units=40_000, resolution="2K", cost_micros=30_000),),
    cost_micros=10_000,
)


def sell(endpoint=PICTURE, **override):
    catalog = Catalog({endpoint.slug: EndpointOverride(**override)})
    catalog.register(endpoint, ScriptedProvider(), "acme")
    return catalog


def costs(catalog):
    return [sale.cost_micros for sale in worst_sales(catalog[PICTURE.slug].endpoint)]


@pytest.mark.parametrize(
    "override",
    [
        {"price": "0.009"},
        {"prices": {"2K": "0.029"}},
        {"cost": "0.021"},
        # Twice the cost of 1K is twice the cost of 2K.
        {"cost": "0.014"},
    ],
)
def test_a_price_below_the_cost_stops_the_start_and_says_the_ways_out(override):
    with pytest.raises(SettingsError, match="would be sold below its cost") as raised:
        sell(**override)
    assert f"allow_loss = true into [endpoints.{PICTURE.slug}]" in str(raised.value)


def test_a_loss_that_is_meant_is_sold_and_told():
    with structlog.testing.capture_logs() as logs:
        catalog = sell(price="0.009", allow_loss=True)
    assert len(catalog) == 1
    assert [one["event"] for one in logs] == ["endpoint.below_cost"]


def test_a_step_that_the_operator_prices_keeps_its_cost():
    assert costs(sell(prices={"2K": "0.05"})) == [10_000, 30_000]


def test_the_operators_cost_raises_the_steps_in_proportion():
    assert costs(sell(cost="0.005")) == [5_000, 15_000]


def test_a_cost_of_pages_gives_way_to_the_operators():
    paper = attrs.evolve(
        ENDPOINT,
        page_cost_micros=900,
        max_pages=20,
        file_extensions=(".pdf",),
        cost_checked="2026-01-01",
    )
    changed = sell(paper, cost="0.019")[paper.slug].endpoint
    assert (changed.page_cost_micros, changed.cost_checked) == (None, None)
    assert [sale.cost_micros for sale in worst_sales(changed)] == [19_000]


def test_a_cost_that_an_operator_sets_later_counts_in_proportion_too():
    catalog = sell()
    catalog.change({PICTURE.slug: EndpointChange(cost_micros=20_000, changed_at=1.0)})
    assert costs(catalog) == [20_000, 60_000]
