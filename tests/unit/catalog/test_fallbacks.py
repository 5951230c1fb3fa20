"""A fallback takes every order, keeps the promise, and costs no more than the price."""

import attrs
import pytest

from gateway import Choice
from gateway.catalog.fallbacks import fill_defaults, find_misfit, has_unknown_cost
from gateway.domain import DOCUMENT_PARSING, SECOND, GenerationRequest, PriceStep, UnitPrice
from gateway_testing.facts import ENDPOINT

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
