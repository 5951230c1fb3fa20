"""An earlier price that is still honoured, also while a fallback makes the orders."""

import attrs
import pytest

from gateway import Choice, GenerationRequest, PriceStep, Quote
from gateway.domain.eip3009 import BASE
from gateway.payments.accept import payable_price, reached_price
from gateway_testing.facts import ENDPOINT

MAKER = attrs.evolve(
    ENDPOINT,
    slug="spare",
    cost_micros=15_000,
    resolution=Choice(values=("1K", "2K"), default="1K"),
    price_steps=(PriceStep(price_units=1, resolution="2K", cost_micros=17_000),),
)
QUOTE = Quote(
    endpoint=ENDPOINT,
    price_units=20_000,
    earlier_units=(14_000, 16_000),
    wallet="0x" + "11" * 20,
    network=BASE,
    resource_url="https://gateway.test/api/x402/picture",
)


@pytest.mark.parametrize(
    ("units", "own", "by_fallback", "by_fallback_2k"),
    [
        (13_999, 20_000, 20_000, 20_000),
        (14_000, 14_000, 20_000, 20_000),
        # A proof is taken whole: it is worth more than the price that it reaches.
        (15_000, 14_000, 14_000, 20_000),
        (16_000, 16_000, 16_000, 20_000),
        (17_000, 16_000, 16_000, 16_000),
        (20_000, 20_000, 20_000, 20_000),
        (99_000, 20_000, 20_000, 20_000),
    ],
)
def test_money_that_is_not_taken_yet_must_cover_the_fallbacks_cost(
    units, own, by_fallback, by_fallback_2k
):
    lent, plain = attrs.evolve(QUOTE, maker=MAKER), GenerationRequest()
    assert payable_price(QUOTE, plain, units) == reached_price(lent, units) == own
    assert payable_price(lent, plain, units) == by_fallback
    assert payable_price(lent, GenerationRequest(resolution="2K"), units) == by_fallback_2k
    unknown = attrs.evolve(lent, maker=attrs.evolve(MAKER, cost_micros=None))
    assert payable_price(unknown, plain, units) == own
