"""While a vendor fails, the catalogue lets the fallback make an endpoint's orders."""

import datetime as dt

import attrs
import pytest

from gateway import Capability
from gateway.catalog.catalog import Catalog
from gateway.catalog.fallbacks import name_fallback
from gateway.contracts.store import EndpointChange
from gateway.errors import ExecutionError
from gateway.running.readiness import Readiness
from tests.conftest import ScriptedProvider
from tests.unit.catalog.test_fallbacks import BOUGHT, PAPER, SPARE


@pytest.fixture
def catalog(clock):
    """Sell three endpoints of three vendors; each names the next one as its fallback."""
    made = Catalog({}, now=clock)
    for slug in ("first", "second", "third"):
        one = attrs.evolve(SPARE, slug=slug, model=f"model of {slug}", cost_micros=1)
        made.register(one, ScriptedProvider(), f"plugin of {slug}")
    change(made)
    return made


def change(catalog, **more):
    changes = {
        slug: EndpointChange(changed_at=1.0, fallback=fallback)
        for slug, fallback in (("first", "second"), ("second", "third"))
    }
    catalog.change(changes | more)


def fail(catalog, slug):
    catalog[slug].upstream.circuit.trip("status 401", is_account=True)


def sold(catalog):
    return {endpoint.slug: endpoint.model for endpoint in catalog}


def test_a_fallback_sells_only_while_the_vendor_fails_and_the_offer_names_its_model(catalog):
    assert sold(catalog)["first"] == "model of first"
    assert catalog["first"].maker is catalog["first"]
    fail(catalog, "first")
    assert sold(catalog)["first"] == "model of second"
    assert catalog["first"].maker is catalog["second"]
    catalog["first"].upstream.circuit.try_again()
    assert sold(catalog)["first"] == "model of first"


def test_pages_that_the_bought_endpoints_provider_limits_are_counted_for_its_fallback(clock):
    made, provider = Catalog({}, now=clock), ScriptedProvider()
    provider.traits = attrs.evolve(provider.traits, limits_pages=True)
    made.register(attrs.evolve(PAPER, price_per_page=None), provider, "plugin")
    paper = made[PAPER.slug]
    kind = PAPER.declaration.file_kind(".pdf")
    assert [paper.reads_file(kind, is_lent=lent) for lent in (False, True)] == [False, True]


def test_a_fallback_without_a_model_is_named_by_its_title():
    named = name_fallback(BOUGHT, attrs.evolve(SPARE, model="", title="Other pictures"))
    assert named.description.endswith("In an outage of its provider, Other pictures may make it.")


@pytest.mark.parametrize("part", ["vendor", "model"])
def test_one_order_tries_the_vendor_again_and_the_fallback_makes_the_others(catalog, part):
    first = catalog["first"]
    circuit = first.upstream.circuit if part == "vendor" else first.circuit
    circuit.trip("status 401", is_account=True)
    circuit.try_again()
    assert sold(catalog)["first"] == "model of first"
    with first.upstream.slot(), first.circuit.working():
        assert sold(catalog)["first"] == "model of second"
        assert catalog["first"].maker is catalog["second"]
        fail(catalog, "second")
        assert sold(catalog)["first"] == "model of first"
        catalog["second"].upstream.circuit.try_again()
    assert sold(catalog)["first"] == "model of first"
    with first.upstream.slot(), first.circuit.working():
        assert catalog["first"].maker is catalog["second"]
        first.succeeded()
        assert sold(catalog)["first"] == "model of first"
        assert catalog["first"].maker is catalog["first"]


def test_the_last_check_before_the_write_refuses_an_order_of_another_maker(catalog, settings):
    ready = Readiness(settings, catalog, None)
    ready.check_maker("first", "first")
    fail(catalog, "first")
    ready.check_maker("first", "second")
    with pytest.raises(ExecutionError, match="just changed"):
        ready.check_maker("first", "first")
    catalog["first"].upstream.circuit.try_again()
    with pytest.raises(ExecutionError, match="just changed"):
        ready.check_maker("first", "second")


def test_the_offer_always_tells_who_may_make_it_in_an_outage(catalog):
    words = "In an outage of its provider, model of second by none may make it."
    for _ in range(2):
        (first, *_, third) = catalog
        assert first.description == f"A picture. {words}"
        assert third.description == "A picture."
        fail(catalog, "first")
    pause = EndpointChange(changed_at=2.0, paused_since=2.0, fallback="third")
    change(catalog, second=pause)
    assert catalog["first"].show(BOUGHT).description.endswith(words)
    long = attrs.evolve(BOUGHT, description="A picture. " * 60)
    assert name_fallback(long, SPARE).description.startswith("In an outage of its provider, pixel")


@pytest.mark.parametrize("works", [True, False])
@pytest.mark.parametrize(
    "end",
    [
        lambda catalog: catalog.hold("its settings are not read", "plugin of second"),
        lambda catalog: catalog.withdraw("plugin of second"),
        lambda catalog: change(
            catalog, second=EndpointChange(changed_at=2.0, cost_micros=BOUGHT.price_units + 1)
        ),
    ],
    ids=["held", "removed", "too dear"],
)
def test_no_offer_names_a_fallback_that_cannot_make_it(catalog, end, works):
    if not works:
        fail(catalog, "first")
    end(catalog)
    first = catalog["first"]
    for offer in (first.show(first.endpoint), catalog.find_endpoint("first")):
        assert (offer.description, offer.model) == ("A picture.", "model of first")


def test_an_offer_names_a_fallback_once_its_results_are_checked(clock):
    catalog = songs(clock)
    offers = {one.slug: one.description for one in catalog}
    assert all("may make it" in words for words in offers.values())
    catalog.note_unchecked("text-to-song", "its functions cannot be loaded")
    assert catalog.find_endpoint("first").description == "A picture."
    catalog.note_unchecked("text-to-song", "")
    assert {one.slug: one.description for one in catalog} == offers
    (alone,) = songs(clock, "second")
    assert (alone.slug, alone.description) == ("first", "A picture.")


def test_a_refused_model_and_a_blocking_plugin_are_the_vendors_too(catalog):
    catalog["first"].circuit.trip("gone", is_account=True)
    catalog.pause_plugin("plugin of second", "It blocks.", pause_s=1)
    assert sold(catalog) == {"second": "model of third", "third": "model of third"}


def test_the_fallback_of_a_fallback_is_not_followed(catalog):
    fail(catalog, "first")
    fail(catalog, "second")
    assert sold(catalog) == {"second": "model of third", "third": "model of third"}
    assert not catalog["first"].sells_now


@pytest.mark.parametrize("paused", ["first", "second"])
def test_a_pause_of_either_ends_the_sale(catalog, paused):
    fail(catalog, "first")
    fallback = "second" if paused == "first" else "third"
    pause = EndpointChange(changed_at=2.0, paused_since=2.0, fallback=fallback)
    change(catalog, **{paused: pause})
    assert "first" not in sold(catalog)


@pytest.mark.parametrize(
    "end",
    [
        lambda catalog: catalog.hold("its settings are not read", "plugin of second"),
        lambda catalog: catalog.withdraw("plugin of second"),
        lambda catalog: fail(catalog, "second"),
    ],
    ids=["held", "removed", "off sale"],
)
def test_a_held_removed_or_failing_fallback_sells_nothing(catalog, end):
    fail(catalog, "first")
    assert "first" in sold(catalog)
    end(catalog)
    assert "first" not in sold(catalog)
    assert catalog["first"].maker is None


def test_the_fallback_is_sought_once_until_something_changes(catalog, monkeypatch):
    sought = []
    monkeypatch.setattr(
        "gateway.catalog.catalog.find_misfit", lambda bought, maker: sought.append(maker.slug)
    )
    fail(catalog, "first")
    for _ in range(3):
        assert catalog["first"].maker is catalog["second"]
    assert sought == ["second"]
    fail(catalog, "third")
    assert catalog["first"].maker is catalog["second"]
    assert sought == ["second", "second"]


def test_a_fallback_sells_until_its_model_retires(clock):
    made = Catalog({}, now=clock)
    tomorrow = dt.datetime.fromtimestamp(clock() + 86_400, dt.UTC).date().isoformat()
    for slug, retires in (("first", None), ("second", tomorrow)):
        one = attrs.evolve(SPARE, slug=slug, cost_micros=1, retires=retires)
        made.register(one, ScriptedProvider(), f"plugin of {slug}")
    made.change({"first": EndpointChange(changed_at=1.0, fallback="second")})
    fail(made, "first")
    assert made["first"].maker is made["second"]
    assert "may make it" in made.find_endpoint("first").description
    clock.offset_s += 86_400
    assert made["first"].maker is None
    assert made.find_endpoint("first").description == "A picture."


def test_a_fallback_that_no_longer_fits_sells_nothing(catalog):
    fail(catalog, "first")
    dear = EndpointChange(changed_at=2.0, fallback="third", cost_micros=20_001)
    change(catalog, second=dear)
    assert "first" not in sold(catalog)


def songs(clock, *undeclared):
    """Sell a song by two vendors; each is the other's fallback."""
    made, song = Catalog({}, now=clock), Capability(name="text-to-song")
    made.declare(song, "plugin of songs")
    for slug in ("first", "second"):
        declared = None if slug in undeclared else song
        one = attrs.evolve(SPARE, slug=slug, cost_micros=1, capability=song.name, declared=declared)
        made.register(one, ScriptedProvider(), f"plugin of {slug}")
    changes = {"first": "second", "second": "first"}
    made.change(
        {slug: EndpointChange(changed_at=1.0, fallback=other) for slug, other in changes.items()}
    )
    return made


@pytest.mark.parametrize("failing", ["first", "second"])
@pytest.mark.parametrize("undeclared", ["first", "second"])
def test_an_undeclared_endpoint_sells_nothing_and_is_no_fallback(clock, undeclared, failing):
    catalog = songs(clock, undeclared)
    other = {"first": "second", "second": "first"}
    assert list(sold(catalog)) == [other[undeclared]]
    fail(catalog, failing)
    assert not catalog[undeclared].sells_now
    assert catalog[undeclared].fallback is None
    works = failing == undeclared
    assert list(sold(catalog)) == ([other[undeclared]] if works else [])


def test_a_capability_that_nothing_can_check_ends_the_sale_by_a_fallback_until_it_can(clock):
    catalog = songs(clock)
    fail(catalog, "first")
    assert list(sold(catalog)) == ["first", "second"]
    catalog.note_unchecked("text-to-song", "its functions cannot be loaded")
    assert sold(catalog) == {}
    assert catalog["first"].maker is catalog["second"].maker is None
    catalog.note_unchecked("text-to-song", "")
    assert catalog["first"].maker is catalog["second"]
    catalog.withdraw("plugin of songs")
    assert sold(catalog) == {}
    assert catalog["first"].maker is None
