"""Operators' changes while the gateway runs, for endpoints with several prices."""

import attrs
import pytest

from gateway.catalog.catalog import Catalog
from gateway.catalog.pricing import Prices, more_prices, prices_of, set_prices
from gateway.contracts.store import EarlierPrice, EndpointChange
from gateway.domain import Choice, PriceStep
from gateway.errors import NotFound, SettingsError
from gateway.settings import EndpointOverride
from gateway_testing.facts import ENDPOINT

LARGE = attrs.evolve(
    ENDPOINT,
    resolution=Choice(values=("1K", "4K"), default="1K"),
    price_steps=(PriceStep(price_units=60_000, resolution="4K"),),
)


class Nothing:
    name = "nothing"


def catalog_of(endpoint=LARGE, **overrides):
    catalog = Catalog({slug: EndpointOverride(**change) for slug, change in overrides.items()})
    catalog.register(endpoint, Nothing(), "test")
    return catalog


def change(**facts):
    return {ENDPOINT.slug: EndpointChange(changed_at=5.0, **facts)}


def prices(endpoint):
    return endpoint.price_units, *(step.price_units for step in endpoint.price_steps)


def test_all_prices_of_an_endpoint_change_by_the_same_factor_above_the_settings():
    catalog = catalog_of(picture={"price": "0.04"})
    assert prices(catalog[ENDPOINT.slug].endpoint) == (40_000, 120_000)
    earlier = (EarlierPrice(price_units=None, good_until=9.0),)
    catalog.change(change(price_units=10_000, earlier_prices=earlier))
    registered = catalog[ENDPOINT.slug]
    assert prices(registered.endpoint) == (10_000, 30_000)
    assert [(prices(one), until) for one, until in registered.earlier] == [((40_000, 120_000), 9.0)]
    assert prices(catalog.configured(ENDPOINT.slug)) == (40_000, 120_000)
    assert catalog.changed_at == 5.0
    catalog.change(change())
    assert prices(catalog[ENDPOINT.slug].endpoint) == (40_000, 120_000)


def test_a_price_that_is_set_apart_does_not_follow_the_first():
    catalog = catalog_of()
    earlier = (EarlierPrice(price_units=10_000, more_units={"4K": 90_000}, good_until=9.0),)
    catalog.change(change(price_units=40_000, more_units={"4K": 70_000}, earlier_prices=earlier))
    registered = catalog[ENDPOINT.slug]
    assert prices(registered.endpoint) == (40_000, 70_000)
    assert [prices(one) for one, _ in registered.earlier] == [(10_000, 90_000)]
    # A step that the plugin no longer has changes nothing.
    catalog.change(change(price_units=40_000, more_units={"8K": 1}))
    assert prices(catalog[ENDPOINT.slug].endpoint) == (40_000, 120_000)


def test_each_price_has_a_name_of_its_own():
    by_page = attrs.evolve(
        LARGE,
        price_steps=(*LARGE.price_steps, PriceStep(price_units=9, min_pages=6)),
        price_per_page=7,
        max_pages=9,
        file_extensions=(".pdf",),
    )
    assert more_prices(by_page) == {"4K": 60_000, "6 pages": 9, "each page": 7}
    changed = set_prices(by_page, Prices(40_000, {"6 pages": 10, "each page": 8}))
    assert more_prices(changed) == {"4K": 120_000, "6 pages": 10, "each page": 8}
    assert prices_of(changed).units == 40_000


def test_a_price_per_page_changes_by_the_factor_of_the_price():
    by_page = attrs.evolve(
        ENDPOINT, price_units=20_000, price_per_page=5_001, max_pages=9, file_extensions=(".pdf",)
    )
    catalog = catalog_of(by_page, picture={"price": "0.01"})
    assert catalog[ENDPOINT.slug].endpoint.price_per_page == 2_501


def test_what_is_kept_about_endpoints_is_made_anew_after_a_change():
    catalog = catalog_of()
    assert catalog.cached("prices", lambda: [one.price_units for one in catalog]) == [20_000]
    catalog.change(change(price_units=30_000))
    assert catalog.cached("prices", lambda: [one.price_units for one in catalog]) == [30_000]


def test_a_change_of_a_slug_that_no_plugin_registers_is_left_out():
    catalog = catalog_of()
    catalog.change({"gone": EndpointChange(changed_at=5.0, price_units=1)})
    assert prices(catalog[ENDPOINT.slug].endpoint) == (20_000, 60_000)
    with pytest.raises(NotFound):
        catalog.configured("gone")


@pytest.mark.parametrize(("cost", "micros"), [("0.02", 20_000), ("0", 0), ("0.00", 0)])
def test_a_cost_of_the_settings_counts_until_the_operator_changes_it(cost, micros):
    catalog = catalog_of(picture={"cost": cost})
    registered = catalog[ENDPOINT.slug]
    assert (registered.endpoint.cost_micros, registered.is_cost_set) == (micros, True)
    catalog.change(change(cost_micros=7))
    assert catalog[ENDPOINT.slug].endpoint.cost_micros == 7


@pytest.mark.parametrize("cost", ["-1", "free", "0.0000001", "nan"])
def test_an_impossible_cost_is_said_in_one_sentence(cost):
    with pytest.raises(SettingsError, match=r"\[endpoints\.picture\] cost: "):
        catalog_of(picture={"cost": cost})
