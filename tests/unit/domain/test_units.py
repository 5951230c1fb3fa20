"""Prices by unit: amounts are rounded up to a step, and bounded on both sides."""

import attrs
import pytest

from gateway import KILOCHARACTERS, MEGAPIXEL, SECOND, GenerationRequest, UnitPrice, usdc
from gateway.catalog.pricing import scale_prices, set_cost
from gateway.domain.costs import find_losses
from gateway.domain.description import price_range
from gateway_testing.facts import ENDPOINT

EACH_SECOND = UnitPrice(unit=SECOND, price_units=1_000, step=5, most=600)
TALK = attrs.evolve(ENDPOINT, price_units=usdc("0.01"), unit_price=EACH_SECOND)


def sent(seconds: float) -> GenerationRequest:
    return GenerationRequest(measured={"seconds": seconds})


@pytest.mark.parametrize(
    ("seconds", "units"),
    [(0, 10_000), (9.9, 10_000), (10, 10_000), (10.0004, 10_000), (10.001, 15_000), (600, 600_000)],
)
def test_seconds_are_sold_in_steps_above_the_least_price(seconds, units):
    assert TALK.price_of(sent(seconds)) == units


def test_characters_are_those_of_the_prompt_and_pixels_those_of_the_file():
    spoken = attrs.evolve(
        TALK, unit_price=UnitPrice(unit=KILOCHARACTERS, price_units=20_000, most=10)
    )
    assert spoken.price_of(GenerationRequest(prompt="x" * 1001)) == 40_000
    larger = attrs.evolve(TALK, unit_price=UnitPrice(unit=MEGAPIXEL, price_units=20_000, most=25))
    assert larger.price_of(GenerationRequest(measured={"pixels": 2_000_000})) == 40_000
    assert larger.price_of(GenerationRequest(measured={"pixels": 2_000_001})) == 60_000
    assert (spoken.prices_file, larger.prices_file) == (False, True)


def test_a_price_has_its_bounds_and_is_scaled_with_the_others():
    assert price_range(TALK) == (10_000, 600_000)
    doubled = scale_prices(TALK, 20_000)
    assert doubled.price_of(sent(600)) == 1_200_000


def test_a_loss_is_found_at_either_end():
    assert not find_losses(attrs.evolve(TALK, cost_micros=10_000))
    assert find_losses(attrs.evolve(TALK, cost_micros=10_001))
    dear = attrs.evolve(TALK, unit_price=attrs.evolve(EACH_SECOND, cost_micros=1_001))
    assert find_losses(dear)
    assert not find_losses(set_cost(dear, 10_000))


def test_what_is_measured_is_no_part_of_the_fingerprint():
    assert sent(5).fingerprint("talk") == GenerationRequest().fingerprint("talk")
