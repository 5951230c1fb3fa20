"""Kinds, prices and the layout of the pages, as plain values."""

import attrs
import pytest

from gateway.domain import GenerationRequest, PriceStep, usdc
from gateway_shop import kinds, offers, prices
from gateway_shop.samples import lay_out
from gateway_testing.facts import ENDPOINT
from tests.bundled_endpoints import bundled_endpoints


def priced_by_pages(*begins: int, most: int | None = 100):
    steps = tuple(PriceStep(price_units=usdc("0.01") * begin, min_pages=begin) for begin in begins)
    parser = bundled_endpoints()["document-parser"]
    return attrs.evolve(parser, price_units=usdc("0.03"), price_steps=steps, max_pages=most)


@pytest.mark.parametrize(
    ("begins", "most", "names"),
    [
        ((6, 21), 100, ["1 to 5 pages", "6 to 20 pages", "21 to 100 pages"]),
        ((2,), 2, ["1 page", "2 pages"]),
        ((21, 6), None, ["1 to 5 pages", "6 to 20 pages", "from 21 pages"]),
    ],
)
def test_the_prices_by_pages_are_those_of_the_gateway_at_both_ends(begins, most, names):
    endpoint = priced_by_pages(*begins, most=most)
    steps = prices.page_steps(endpoint)
    assert [step.pages for step in steps] == names
    for step, begin in zip(steps, sorted({1, *begins}), strict=True):
        assert usdc(step.price) == endpoint.price_of(GenerationRequest(pages=begin))


def test_a_price_per_page_has_a_least_price():
    parser = bundled_endpoints()["document-parser"]
    endpoint = attrs.evolve(parser, price_units=usdc("0.05"), price_per_page=usdc("0.02"))
    assert [(step.pages, step.price) for step in prices.page_steps(endpoint)] == [
        ("each page", "0.02"),
        ("at least", "0.05"),
    ]
    assert prices.total_of_defaults(endpoint) == "0.05 to 20"


@pytest.mark.parametrize(
    ("units", "words"),
    [(600_000, "0.60"), (5_000, "0.005"), (2_000_000, "2"), (10_500_000, "10.50"), (1, "0.000001")],
)
def test_an_amount_is_written_as_money(units, words):
    assert prices.amount(units) == words


def test_every_bundled_choice_has_its_price_and_every_total_is_one():
    for endpoint in bundled_endpoints().values():
        for value, price in prices.prices_of_choices(endpoint).get("resolution", {}).items():
            assert usdc(price) == endpoint.price_of(GenerationRequest(resolution=value))
        if not endpoint.prices_pages:
            default = GenerationRequest(resolution=endpoint.resolution.default)
            assert usdc(prices.total_of_defaults(endpoint)) == endpoint.price_of(default)


@pytest.mark.parametrize(
    ("capabilities", "words"),
    [
        (["document-parsing"], "Documents as text"),
        (["document-parsing", "text-to-image", "text-to-image"], "Pictures and documents as text"),
        (
            ["text-to-speech", "document-extraction", "image-editing"],
            "Edits of your pictures, data from documents and text to speech",
        ),
    ],
)
def test_what_is_sold_is_named_and_nothing_else(capabilities, words):
    assert kinds.name_all(map(kind_of, capabilities)) == words


def kind_of(capability: str) -> kinds.Kind:
    return kinds.kind_of(attrs.evolve(ENDPOINT, capability=capability))


def offer(number: int, **changes):
    sample = attrs.make_class("Sample", ["card"])
    plain = {"slug": str(number), "kind": kind_of("text-to-image"), "payable": True}
    return plain | {"capability": "text-to-image", "sample": sample(card="card")} | changes


def test_a_small_shop_shows_cards_of_results_and_rows_of_the_rest():
    shown = offers.arrange([offer(1), offer(2, sample=None), offer(3)])
    assert [one["slug"] for one in shown["cards"]] == ["1", "3"]
    assert [one["slug"] for one in shown["rest"]] == ["2"]
    assert (shown["one"], shown["groups"]) == (None, [])


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (1, 1), (3, 1), (4, 4), (30, 4)])
def test_four_pictures_at_the_top_or_one(count, shown):
    assert len(offers.arrange([offer(number) for number in range(count)])["mosaic"]) == shown


def test_a_picture_of_an_offer_off_sale_is_not_at_the_top():
    assert offers.arrange([offer(1, payable=False), offer(2, sample=None)])["mosaic"] == []


def test_an_amount_in_a_laid_out_sample_stays_on_one_line():
    html = lay_out("|a|b|\n|---|---|\n|North Sea coast|$ 148,050|\n")
    assert "<td>North Sea coast</td>" in html
    assert "<td>$\u00a0148,050</td>" in html


def test_a_laid_out_sample_loads_runs_and_styles_nothing():
    text = (
        "# Head\n\n<script>x</script> [a](https://example.com) ![b](https://example.com/c.png)\n\n"
        "|a|b|\n|---|--:|\n|1|2|\n\n<https://example.com>"
    )
    html = lay_out(text)
    assert '<p class="head h1">Head</p>' in html
    assert '<td class="n">2</td>' in html
    for forbidden in ("<script", "<a ", "<img", "style=", "<h1"):
        assert forbidden not in html
