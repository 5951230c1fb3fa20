"""A fallback takes every order, keeps the promise, and costs no more than the price."""

import datetime as dt

import attrs
import pytest

from gateway import Capability, Choice
from gateway.catalog.catalog import Catalog
from gateway.catalog.fallbacks import fill_defaults, find_misfit, has_unknown_cost, name_fallback
from gateway.contracts.store import EndpointChange
from gateway.domain import DOCUMENT_PARSING, SECOND, GenerationRequest, PriceStep, UnitPrice
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider

BOUGHT = attrs.evolve(
    ENDPOINT,
    price_units=20_000,
    aspect_ratio=Choice(values=("1:1", "16:9"), default="1:1"),
    output_format=Choice(values=("png", "jpg"), default="png"),
    resolution=Choice(values=("1K", "2K"), default="1K"),
    price_steps=(PriceStep(price_units=50_000, resolution="2K"),),
    max_prompt_chars=1000,
)
SPARE = attrs.evolve(BOUGHT, slug="spare", cost_micros=20_000)
PAPER = attrs.evolve(
    BOUGHT,
    capability=DOCUMENT_PARSING,
    file_extensions=(".pdf",),
    max_pages=100,
    price_per_page=1000,
    aspect_ratio=Choice(),
    output_format=Choice(),
    resolution=Choice(),
    price_steps=(),
    required_fields=("fileBase64",),
)


def test_an_endpoint_that_offers_more_fits():
    more = attrs.evolve(
        SPARE,
        aspect_ratio=Choice(values=("16:9", "1:1", "4:3"), default="4:3"),
        resolution=Choice(values=("1K", "2K", "4K"), default="4K"),
        max_prompt_chars=2000,
        required_fields=(),
    )
    assert find_misfit(BOUGHT, more) is None
    assert not has_unknown_cost(BOUGHT, more)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"slug": BOUGHT.slug}, "same endpoint"),
        ({"capability": DOCUMENT_PARSING}, "not text-to-image"),
        ({"required_fields": ("prompt", "resolution")}, "needs resolution"),
        ({"aspect_ratio": Choice(values=("1:1",), default="1:1")}, "aspect_ratio 16:9"),
        ({"output_format": Choice()}, "output_format png, jpg"),
        ({"resolution": Choice(values=("1K",), default="1K")}, "resolution 2K"),
        ({"least_pixels": {"2K": 1}}, "fewer pixels at 2K"),
        ({"max_prompt_chars": 999}, "999 characters"),
        ({"cost_micros": 20_001}, "costs 0.020001 USD"),
        ({"price_steps": (PriceStep(price_units=9, resolution="2K", cost_micros=50_001),)}, "0.05"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_endpoint_that_takes_promises_or_leaves_less_does_not_fit(changes, problem):
    assert problem in find_misfit(BOUGHT, attrs.evolve(SPARE, **changes))


@pytest.mark.parametrize("name", ["aspect_ratio", "output_format", "resolution"])
def test_a_choice_that_the_endpoint_leaves_open_stays_open(name):
    values = getattr(BOUGHT, name).values
    open_one = attrs.evolve(BOUGHT, **{name: Choice(values=values)})
    spare = attrs.evolve(open_one, slug="spare", cost_micros=1)
    assert find_misfit(open_one, spare) is None
    chosen = attrs.evolve(spare, **{name: Choice(values=values, default=values[-1])})
    assert f"default {name}" in find_misfit(open_one, chosen)


def test_a_request_without_a_resolution_is_compared_too():
    open_one = attrs.evolve(BOUGHT, resolution=Choice(values=("1K", "2K")))
    steps = tuple(PriceStep(price_units=9, resolution=r, cost_micros=1) for r in ("1K", "2K"))
    spare = attrs.evolve(open_one, slug="spare", cost_micros=20_001, price_steps=steps)
    assert "costs 0.020001 USD" in find_misfit(open_one, spare)
    promise = attrs.evolve(open_one, least_pixels={"": 10**6})
    spare = attrs.evolve(open_one, slug="spare", cost_micros=1)
    assert "fewer pixels" in find_misfit(promise, spare)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"file_extensions": (".docx",)}, "does not take .pdf"),
        ({"max_pages": 99}, "99 pages"),
        ({"page_cost_micros": 1001}, "more than the price"),
        ({"cost_micros": 20_001}, "more than the price"),
        ({"max_picture_bytes": 5}, "5 bytes"),
    ],
)
def test_documents_are_compared_by_files_pages_and_cost_of_each_page(changes, problem):
    spare = attrs.evolve(PAPER, slug="spare", page_cost_micros=None)
    assert find_misfit(PAPER, spare) is None
    assert problem in find_misfit(PAPER, attrs.evolve(spare, **changes))


def test_a_cost_of_each_page_needs_a_limit_of_pages():
    flat = attrs.evolve(PAPER, price_per_page=None, max_pages=None)
    spare = attrs.evolve(flat, slug="spare", page_cost_micros=1)
    assert "limits no pages" in find_misfit(flat, spare)


@pytest.mark.parametrize(
    ("own", "other", "problem"),
    [
        ({}, {}, None),
        ({"step": 10}, {"step": 5}, None),
        ({}, {"step": 10}, "bills 10 seconds at once"),
        ({}, {"most": 59}, "at most 59 seconds"),
        ({}, {"cost_micros": 1001}, "more than the price"),
    ],
)
def test_prices_by_unit_are_compared_by_unit_most_and_step(own, other, problem):
    price = UnitPrice(unit=SECOND, price_units=1000, most=60, cost_micros=900)
    sound = attrs.evolve(BOUGHT, unit_price=attrs.evolve(price, **own))
    spare = attrs.evolve(SPARE, unit_price=attrs.evolve(price, **other))
    found = find_misfit(sound, spare)
    assert found is None if problem is None else problem in found


def test_a_cost_that_rises_between_two_prices_is_found():
    dear = PriceStep(price_units=1, min_pages=50, cost_micros=60_000)
    spare = attrs.evolve(PAPER, slug="spare", cost_micros=1, price_per_page=None)
    assert find_misfit(PAPER, spare) is None
    assert "more than the price" in find_misfit(PAPER, attrs.evolve(spare, price_steps=(dear,)))


def test_an_unknown_cost_is_no_misfit_but_not_zero():
    spare = attrs.evolve(SPARE, cost_micros=None)
    assert find_misfit(BOUGHT, spare) is None
    assert has_unknown_cost(BOUGHT, spare)


def test_a_request_keeps_its_choices_and_gets_the_makers_for_the_rest():
    request = GenerationRequest(prompt="a boat", aspect_ratio="16:9")
    filled = fill_defaults(request, BOUGHT)
    assert filled == attrs.evolve(request, output_format="png", resolution="1K")


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


def test_the_offer_always_tells_who_makes_it_in_an_outage(catalog):
    words = "In an outage of its provider, model of second by none makes it."
    for _ in range(2):
        (first, *_, third) = catalog
        assert first.description == f"A picture. {words}"
        assert third.description == "A picture."
        fail(catalog, "first")
    long = attrs.evolve(BOUGHT, description="A picture. " * 60)
    assert name_fallback(long, SPARE).description.startswith("In an outage of its provider, pixel")


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
    clock.offset_s += 86_400
    assert made["first"].maker is None


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
