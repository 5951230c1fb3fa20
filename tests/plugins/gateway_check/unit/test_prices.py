"""The rows `prices` and `models` of `gateway check`."""

import datetime as dt

import attrs
import pytest

from gateway.catalog.catalog import Catalog
from gateway.contracts.store import EndpointChange
from gateway.settings import EndpointOverride
from gateway_check.prices import describe_models, describe_prices
from gateway_operator.checklist import slugs_without_cost
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider

TODAY = dt.date(2026, 11, 22)
COSTED = attrs.evolve(ENDPOINT, price_units=20_000, cost_micros=10_000, cost_checked="2026-08-24")


def sell(endpoint=COSTED, **override):
    catalog = Catalog({endpoint.slug: EndpointOverride(**override)})
    catalog.register(endpoint, ScriptedProvider(), "acme")
    return catalog


def test_good_prices_need_few_words():
    assert describe_prices(sell(), TODAY) == "every price is 1.2 times its cost or more"


def test_a_table_is_old_after_ninety_days():
    row = describe_prices(sell(), TODAY + dt.timedelta(days=1))
    assert f"the cost of {COSTED.slug} was last checked on 2026-08-24" in row


def test_a_thin_margin_and_an_unknown_cost_are_told():
    thin = attrs.evolve(COSTED, cost_micros=19_000)
    assert f"{COSTED.slug} at less than 1.2 times its cost" in describe_prices(sell(thin), TODAY)
    unknown = attrs.evolve(COSTED, cost_micros=None, cost_checked=None)
    assert "as far as costs are known" in describe_prices(sell(unknown), TODAY)
    assert slugs_without_cost([unknown, COSTED]) == [COSTED.slug]


def test_a_loss_is_wrong_unless_it_is_allowed():
    catalog = sell()
    change = {COSTED.slug: EndpointChange(cost_micros=30_000, changed_at=1.0)}
    catalog.change(change)
    with pytest.raises(ValueError, match="would be sold below its cost"):
        describe_prices(catalog, TODAY)
    allowed = sell(allow_loss=True)
    allowed.change(change)
    assert "below its cost, as you allow" in describe_prices(allowed, TODAY)


RETIRING = attrs.evolve(ENDPOINT, retires="2026-12-01")


def test_a_model_is_warned_of_thirty_days_before_it_retires():
    catalog = sell(RETIRING)
    assert "no model retires" in describe_models(catalog, dt.date(2026, 10, 31))
    row = describe_models(catalog, dt.date(2026, 11, 1))
    assert f"{RETIRING.slug} ({RETIRING.model}) on 2026-12-01" in row


def test_a_model_that_has_retired_is_wrong_unless_its_endpoint_is_switched_off():
    with pytest.raises(ValueError, match=f"not sold.*{RETIRING.slug}.*Name another model"):
        describe_models(sell(RETIRING), dt.date(2026, 12, 1))
    assert "no model" in describe_models(sell(RETIRING, enabled=False), dt.date(2026, 12, 1))
