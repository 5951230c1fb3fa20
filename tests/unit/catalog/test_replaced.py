"""Endpoints that a plugin replaces while the gateway runs."""

import attrs
import pytest

from gateway import (
    SECOND,
    Attachment,
    Choice,
    Endpoint,
    GenerationRequest,
    PriceStep,
    SettingsError,
    UnitPrice,
)
from gateway.catalog.catalog import Catalog
from gateway.catalog.earlier import honours
from gateway.contracts.store import EarlierPrice, EndpointChange
from gateway.domain import KILOCHARACTERS, QUOTE_LIFE_S
from gateway.errors import NotFound

PICTURE = Endpoint(
    slug="picture",
    title="T",
    description="D",
    model="m",
    provider="p",
    capability="text-to-image",
    price_units=20_000,
)
BY_SECOND = UnitPrice(unit=SECOND, price_units=1_000, most=600)
BY_TEXT = UnitPrice(unit=KILOCHARACTERS, price_units=1_000, most=4)


@attrs.define
class Provider:
    """Equal to another one with the same address."""

    address: str = "here"
    name: str = "p"

    async def submit(self, request, job):
        raise NotImplementedError


class Clock:
    at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock():
    return Clock()


def catalog_of(endpoint, clock, provider=None):
    catalog = Catalog({}, now=clock)
    catalog.register(endpoint, provider or Provider(), "acme")
    return catalog


def replaced(old, new, clock):
    """Return the endpoint after a reload."""
    catalog = catalog_of(old, clock)
    catalog.replace("acme", [(new, Provider())])
    return catalog["picture"]


@pytest.mark.parametrize(
    ("old", "new", "is_honoured"),
    [
        ({}, {"price_units": 30_000}, True),
        ({}, {"title": "Other"}, False),
        ({}, {"unit_price": BY_SECOND}, True),
        ({"unit_price": BY_TEXT}, {}, True),
        ({"unit_price": BY_SECOND}, {"unit_price": attrs.evolve(BY_SECOND, step=5)}, True),
        # A request is not measured by seconds or pages any more, so it would cost the minimum.
        ({"unit_price": BY_SECOND}, {}, False),
        ({"unit_price": BY_SECOND}, {"unit_price": BY_TEXT}, False),
        ({"price_per_page": 1_000, "max_pages": 9}, {}, False),
        ({"price_per_page": 1_000, "max_pages": 9}, {"max_pages": 9}, True),
    ],
)
def test_an_earlier_price_is_honoured_if_requests_are_still_measured(old, new, is_honoured, clock):
    before, after = attrs.evolve(PICTURE, **old), attrs.evolve(PICTURE, **new)
    expected = [(before, 1000.0 + QUOTE_LIFE_S)] if is_honoured else []
    sold = replaced(before, after, clock)
    payable = [one for one in sold.earlier if honours(one[0], sold.endpoint, GenerationRequest())]
    assert payable == expected


SIZES = Choice(values=("1K", "4K"), default="1K")


@pytest.mark.parametrize(
    ("old", "request_", "is_honoured"),
    [
        ({"resolution": SIZES}, {"resolution": "4K"}, True),
        # What the earlier offer did not take, it did not price.
        ({}, {"resolution": "4K"}, False),
        ({}, {"aspect_ratio": "16:9"}, False),
        ({}, {"attachment": Attachment(name="a.pdf", data=b"%PDF")}, False),
        ({"max_prompt_chars": 5}, {"prompt": "a boat"}, False),
        ({"max_pages": 3}, {"pages": 4}, False),
        ({"unit_price": attrs.evolve(BY_TEXT, most=1)}, {"prompt": "a" * 1_001}, False),
        ({"unit_price": BY_TEXT}, {"prompt": "a" * 1_001}, True),
    ],
)
def test_an_earlier_price_is_only_for_requests_that_it_was_for(old, request_, is_honoured):
    new = attrs.evolve(PICTURE, resolution=SIZES, price_units=500_000)
    given = honours(attrs.evolve(PICTURE, **old), new, GenerationRequest(**request_))
    assert given is is_honoured


def test_a_slug_keeps_its_capability(clock):
    catalog = catalog_of(PICTURE, clock)
    catalog.replace("acme", [])
    with pytest.raises(SettingsError, match="Give the new endpoint another name"):
        catalog.replace("acme", [(attrs.evolve(PICTURE, capability="image-editing"), Provider())])


def test_a_live_price_and_a_reload_keep_what_was_quoted(clock):
    catalog = catalog_of(attrs.evolve(PICTURE, price_units=50_000), clock)
    before = EarlierPrice(price_units=None, good_until=clock.at + QUOTE_LIFE_S)
    catalog.change(
        {
            "picture": EndpointChange(
                changed_at=clock.at, price_units=60_000, earlier_prices=(before,)
            )
        }
    )
    clock.at += 60
    for _ in range(2):
        catalog.replace("acme", [(attrs.evolve(PICTURE, price_units=10_000), Provider())])
        assert catalog["picture"].endpoint.price_units == 60_000
        (earlier,) = catalog["picture"].earlier
        assert (earlier[0].price_units, earlier[1]) == (50_000, before.good_until)


def test_a_removed_endpoint_is_bought_while_its_quotes_live(clock):
    catalog = catalog_of(PICTURE, clock)
    catalog.replace("acme", [])
    clock.at += QUOTE_LIFE_S - 1
    catalog.replace("acme", [])
    assert catalog.payable("picture").endpoint == PICTURE
    with pytest.raises(NotFound):
        catalog["picture"]
    clock.at += 1
    with pytest.raises(NotFound):
        catalog.payable("picture")


def test_an_endpoint_that_comes_back_dearer_honours_its_quotes(clock):
    catalog = catalog_of(PICTURE, clock)
    catalog.replace("acme", [])
    clock.at += 20
    catalog.replace("acme", [(attrs.evolve(PICTURE, price_units=50_000), Provider())])
    assert catalog["picture"].earlier == ((PICTURE, 1000.0 + QUOTE_LIFE_S),)


def test_earlier_prices_end_with_their_quotes(clock):
    catalog = catalog_of(PICTURE, clock)
    for units in (30_000, 40_000):
        clock.at += QUOTE_LIFE_S - 100
        catalog.replace("acme", [(attrs.evolve(PICTURE, price_units=units), Provider())])
    assert [one.price_units for one, _ in catalog["picture"].earlier] == [20_000, 30_000]
    clock.at += 150
    catalog.replace("acme", [(attrs.evolve(PICTURE, price_units=50_000), Provider())])
    assert [one.price_units for one, _ in catalog["picture"].earlier] == [30_000, 40_000]


def test_prices_by_resolution_are_compared_too(clock):
    sizes = Choice(values=("1K", "2K"), default="1K")
    old = attrs.evolve(PICTURE, resolution=sizes)
    new = attrs.evolve(old, price_steps=(PriceStep(price_units=50_000, resolution="2K"),))
    ((earlier, _),) = replaced(old, new, clock).earlier
    assert earlier.price_of(GenerationRequest(resolution="2K")) == 20_000


def test_an_equal_provider_stays_and_another_one_replaces_it(clock):
    catalog = catalog_of(PICTURE, clock)
    first = catalog["picture"]
    catalog.replace("acme", [(PICTURE, Provider())])
    assert catalog["picture"].upstream is first.upstream
    assert catalog["picture"].circuit is first.circuit
    catalog.replace("acme", [(attrs.evolve(PICTURE, model="n"), Provider())])
    assert catalog["picture"].circuit is not first.circuit
    catalog.replace("acme", [(PICTURE, Provider("there"))])
    assert catalog["picture"].upstream.provider.address == "there"
    # It is closed with the gateway, since its tasks may still run.
    assert catalog.withdrawn == [first.upstream]


def test_a_removed_endpoint_is_known_and_can_come_back(clock):
    catalog = catalog_of(PICTURE, clock)
    assert catalog.replace("acme", []).removed == ("picture",)
    assert catalog.find("picture").is_removed
    assert catalog.runnable_slugs() == ["picture"]
    assert not catalog.is_enabled("picture")
    assert (list(catalog), catalog.everything(), catalog.offered()) == ([], [], [])
    assert str(catalog.replace("acme", [])) == ""
    assert catalog.replace("acme", [(PICTURE, Provider())]).added == ("picture",)
    assert catalog["picture"].sells_now


def test_a_slug_of_another_plugin_changes_nothing(clock):
    catalog = catalog_of(PICTURE, clock)
    catalog.register(attrs.evolve(PICTURE, slug="other"), Provider(), "other-plugin")
    offers = [
        (attrs.evolve(PICTURE, price_units=30_000), Provider()),
        (attrs.evolve(PICTURE, slug="other"), Provider()),
    ]
    with pytest.raises(ValueError, match="registered by other-plugin and by acme"):
        catalog.replace("acme", offers)
    assert catalog["picture"].endpoint.price_units == 20_000


def test_a_held_plugin_sells_no_new_endpoint_either(clock):
    catalog = catalog_of(PICTURE, clock)
    catalog.hold("its settings are not known", "acme")
    catalog.note_unchecked("text-to-image", "nothing checks it")
    catalog.replace("acme", [(attrs.evolve(PICTURE, slug="new"), Provider("new"))])
    assert catalog["new"].held == "its settings are not known"
