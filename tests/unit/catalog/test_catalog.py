"""The offers are computed once per change, not per request."""

import datetime as dt

import attrs
import pytest

from gateway.catalog.catalog import Catalog
from gateway.errors import NotFound
from gateway.settings import EndpointOverride
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider


def put_on_sale(catalog, slug, provider=None, *, plugin="acme"):
    provider = provider or ScriptedProvider()
    catalog.register(attrs.evolve(ENDPOINT, slug=slug), provider, plugin)
    return catalog[slug].upstream.circuit


def slugs(catalog):
    return [endpoint.slug for endpoint in catalog]


@pytest.fixture
def catalog():
    return Catalog({"off": EndpointOverride(enabled=False)})


def test_an_endpoint_is_counted_while_its_provider_sells(catalog):
    circuit = put_on_sale(catalog, "one")
    put_on_sale(catalog, "two")
    assert (slugs(catalog), len(catalog)) == (["one", "two"], 2)
    circuit.trip("402: top up")
    assert (slugs(catalog), len(catalog)) == (["two"], 1)
    circuit.stay_open("402: still")
    assert (slugs(catalog), len(catalog)) == (["two"], 1)
    circuit.try_again()
    assert (slugs(catalog), len(catalog)) == (["one", "two"], 2)


def test_all_endpoints_of_one_provider_go_off_sale_together(catalog):
    provider = ScriptedProvider()
    put_on_sale(catalog, "one", provider)
    put_on_sale(catalog, "two", provider)
    assert len(catalog) == 2
    catalog["two"].upstream.circuit.trip("broken")
    assert len(catalog) == 0


def test_a_plugin_that_rests_or_is_withdrawn_is_not_counted(catalog):
    put_on_sale(catalog, "one", plugin="resting")
    put_on_sale(catalog, "two", plugin="left out")
    put_on_sale(catalog, "three")
    assert len(catalog) == 3
    catalog.pause_plugin("resting", "it blocks", pause_s=1)
    assert slugs(catalog) == ["two", "three"]
    catalog.withdraw("left out")
    assert slugs(catalog) == ["three"]


def test_what_the_operator_switched_off_is_not_counted(catalog):
    put_on_sale(catalog, "one")
    catalog.register(attrs.evolve(ENDPOINT, slug="off"), ScriptedProvider(), "acme")
    assert (slugs(catalog), len(catalog)) == (["one"], 1)


def test_a_text_about_the_catalogue_is_made_once_for_each_change(catalog):
    made = []

    def describe():
        made.append(" ".join(slugs(catalog)))
        return made[-1]

    circuit = put_on_sale(catalog, "one")
    for _ in range(3):
        assert catalog.cached("text", describe) == "one"
    put_on_sale(catalog, "two")
    assert catalog.cached("text", describe) == "one two"
    circuit.trip("402: top up")
    for _ in range(3):
        assert catalog.cached("text", describe) == "two"
    assert made == ["one", "one two", "two"]


def test_an_endpoint_is_not_sold_from_the_day_on_which_its_model_retires():
    day = dt.datetime(2026, 12, 1, tzinfo=dt.UTC).timestamp()
    clock = [day - 1]
    catalog = Catalog({}, now=lambda: clock[0])
    put_on_sale(catalog, "stays")
    catalog.register(
        attrs.evolve(ENDPOINT, slug="ends", retires="2026-12-01"), ScriptedProvider(), "acme"
    )
    assert slugs(catalog) == ["stays", "ends"]
    assert catalog.find_endpoint("ends") is not None
    clock[0] = day
    assert slugs(catalog) == ["stays"]
    assert catalog.find_endpoint("ends") is None
    with pytest.raises(NotFound):
        catalog["ends"]
    assert [endpoint.slug for endpoint in catalog.offered()] == ["stays", "ends"]


def test_another_model_of_the_operators_does_not_retire_with_that_of_the_table():
    catalog = Catalog({ENDPOINT.slug: EndpointOverride(model="another")}, now=lambda: 4e9)
    catalog.register(attrs.evolve(ENDPOINT, retires="2026-12-01"), ScriptedProvider(), "acme")
    assert slugs(catalog) == [ENDPOINT.slug]


def test_a_day_that_is_none_is_refused():
    with pytest.raises(ValueError, match="isoformat"):
        attrs.evolve(ENDPOINT, retires="soon")
