"""Cost of a request, and the worst request of each price."""

import attrs

from gateway import Choice, GenerationRequest, PriceStep
from gateway.domain.costs import find_losses, worst_sales
from gateway_testing.facts import ENDPOINT

SIZES = Choice(values=("1K", "2K", "4K"), default="1K")
PICTURE = attrs.evolve(
    ENDPOINT,
    resolution=SIZES,
    price_units=80_000,
    price_steps=(
        PriceStep(price_units=120_000, resolution="2K", cost_micros=60_000),
        PriceStep(price_units=180_000, resolution="4K"),
    ),
    cost_micros=40_000,
)
PAPER = attrs.evolve(
    ENDPOINT,
    price_units=30_000,
    price_steps=(
        PriceStep(price_units=120_000, min_pages=6),
        PriceStep(price_units=300_000, min_pages=21),
    ),
    page_cost_micros=4_000,
    max_pages=50,
    file_extensions=(".pdf",),
)


def test_a_resolution_costs_what_its_step_says_or_else_the_endpoint():
    costs = {each: PICTURE.cost_of(GenerationRequest(resolution=each)) for each in SIZES.values}
    assert costs == {"1K": 40_000, "2K": 60_000, "4K": 40_000}


def test_a_document_costs_its_pages_and_one_not_counted_one():
    costs = [PAPER.cost_of(GenerationRequest(pages=pages)) for pages in (None, 1, 7)]
    assert costs == [4_000, 4_000, 28_000]


def test_the_worst_document_of_each_price_is_its_longest():
    found = [(one.pages, one.price_units, one.cost_micros) for one in worst_sales(PAPER)]
    assert found == [(5, 30_000, 20_000), (20, 120_000, 80_000), (50, 300_000, 200_000)]
    assert all(one.is_enough for one in worst_sales(PAPER))


def test_a_step_that_no_document_reaches_is_not_sold():
    short = attrs.evolve(PAPER, max_pages=20)
    assert [one.pages for one in worst_sales(short)] == [5, 20]


def test_a_price_per_page_grows_with_the_document_from_the_least_price_on():
    by_page = attrs.evolve(PAPER, price_steps=(), price_per_page=20_000)
    prices = [by_page.price_of(GenerationRequest(pages=pages)) for pages in (None, 1, 2, 50)]
    assert prices == [30_000, 30_000, 40_000, 1_000_000]
    assert [(one.pages, one.is_loss) for one in worst_sales(by_page)] == [(1, False), (50, False)]
    cheap = attrs.evolve(by_page, price_per_page=3_000)
    assert [(one.pages, one.price_units) for one in find_losses(cheap)] == [(50, 150_000)]
    dear = attrs.evolve(by_page, page_cost_micros=None, cost_micros=40_000)
    assert [one.pages for one in find_losses(dear)] == [1]


def test_without_a_cost_nothing_is_known_to_be_a_loss_and_nothing_to_be_enough():
    (sale,) = worst_sales(attrs.evolve(ENDPOINT, cost_micros=None))
    assert (sale.is_loss, sale.is_enough) == (False, False)
    assert str(sale) == "one generation: sold for 0.02 USDC, costs an unknown sum"


def test_a_loss_names_its_request_and_its_sums():
    dear = attrs.evolve(PAPER, page_cost_micros=6_001)
    (loss, *_) = find_losses(dear)
    assert str(loss) == "5 pages: sold for 0.03 USDC, costs 0.030005 USD"
    # A price equal to the cost makes no loss, and is not enough.
    even = attrs.evolve(ENDPOINT, cost_micros=ENDPOINT.price_units)
    (sale,) = worst_sales(even)
    assert (find_losses(even), sale.is_enough) == ([], False)
