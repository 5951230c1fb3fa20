"""The front page and the forms of shops of different sizes, without a browser."""

import base64
import json

import attrs
import pytest

from gateway import Capability, Choice, Endpoint, PriceStep, hookimpl, usdc
from gateway_shop.offers import ROWS_FROM
from tests.conftest import running
from tests.gateway.web.test_pages import get_page

PICTURE = Endpoint(
    slug="offer-0",
    title="Offer 0",
    description="It draws.",
    model="model-0",
    provider="scripted",
    capability="text-to-image",
    price_units=usdc("0.08"),
    resolution=Choice(values=("1K", "2K", "4K"), default="1K"),
    price_steps=(
        PriceStep(price_units=usdc("0.16"), resolution="2K"),
        PriceStep(price_units=usdc("0.24"), resolution="4K"),
    ),
)
EVIL = '"><script>alert(1)</script>'


@attrs.frozen
class Offers:
    """A plugin with a number of pictures; every third is a kind of its own."""

    provider: object
    count: int
    __name__ = "offers"

    @hookimpl
    def register_capabilities(self, register) -> None:
        register(Capability(name="text-to-music"))

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        for number in range(self.count):
            kind = PICTURE.capability if number % 3 else "text-to-music"
            endpoint = attrs.evolve(
                PICTURE, slug=f"offer-{number}", title=f"Offer {number}", description=EVIL,
                capability=kind,
            )  # fmt: skip
            register(endpoint, self.provider)


@attrs.frozen
class One:
    """A plugin with one endpoint."""

    endpoint: Endpoint
    provider: object
    __name__ = "one"

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        register(self.endpoint, self.provider)


def shop(settings, *, plugins, **changes):
    """Start a gateway whose only offers are those of `plugins`."""
    alone = settings.changed(plugins_disabled=("gateway_documents",), **changes)
    return running(alone, more=plugins)


async def asked_price(gateway, **body) -> str:
    """Return the price in the 402 to a request without a payment, in USDC."""
    answer = await gateway.client.post("/api/x402/offer-0", json={"prompt": "a boat", **body})
    assert answer.status_code == 402
    required = json.loads(base64.b64decode(answer.headers["PAYMENT-REQUIRED"]))
    return f"{int(required['accepts'][0]['amount']) / 10**6:g}"


async def test_each_choice_names_the_price_that_the_gateway_asks_for_it(settings, provider):
    async with shop(settings, plugins=[One(PICTURE, provider)]) as started:
        page = await get_page(started, "/play/offer-0")
        prices = {
            found["value"]: found["data-price"]
            for _, found in page.tags
            if found.get("name") == "resolution"
        }
        assert prices == {"1K": "0.08", "2K": "0.16", "4K": "0.24"}
        for resolution, price in prices.items():
            assert await asked_price(started, resolution=resolution) == price
            assert price in page.words
        # Before anything is chosen it is the default's.
        assert await asked_price(started) == "0.08"
        assert "0.08 USDC" in page.words


async def test_choices_of_one_price_name_none(settings, provider):
    plain = attrs.evolve(PICTURE, price_steps=())
    async with shop(settings, plugins=[One(plain, provider)]) as started:
        page = await get_page(started, "/play/offer-0")
    assert not page.values("data-price")
    assert "0.08 USDC" in page.words


async def test_one_offer_is_not_a_card_in_a_row(settings, provider):
    async with shop(settings, plugins=[One(PICTURE, provider)]) as started:
        page = await get_page(started, "/")
    classes = page.values("class")
    assert "only" in classes
    assert not {"cards", "offers", "search"} & set(classes)
    assert "Pictures from 0.08 USDC each." in page.words
    assert "1K for 0.08, 2K for 0.16, 4K for 0.24" in page.words
    assert "/play/offer-0" in page.values("href")


@pytest.mark.parametrize("count", [ROWS_FROM - 1, ROWS_FROM])
async def test_from_twelve_offers_on_there_are_kinds_and_a_search(settings, provider, count):
    async with shop(settings, plugins=[Offers(provider, count)]) as started:
        page = await get_page(started, "/")
        text = await (await started.client.get("/")).get_data(as_text=True)
    many = count >= ROWS_FROM
    assert ("search" in page.values("class")) is many
    assert page.values("data-kind") == (["text-to-image", "text-to-music"] if many else [])
    links = [link for link in page.values("href") if link.startswith("/play/offer-")]
    assert set(links) == {f"/play/offer-{number}" for number in range(count)}
    assert "Pictures and text to music from 0.08 USDC each." in page.words
    # The words that the search reads are an attribute.
    assert "<script>alert" not in text


async def test_the_operator_is_named_with_logo_icon_and_contact(settings, provider, tmp_path):
    logo = tmp_path / "logo.png"
    logo.write_bytes(b'<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h9v9z"/></svg>')
    brand = {"logo_file": str(logo), "contact_email": "shop@example.com"}
    async with shop(settings, plugins=[One(PICTURE, provider)], **brand) as started:
        page = await get_page(started, "/")
        (path,) = {source for source in page.values("src") if source.startswith("/brand/")}
        assert path in page.values("href")
        assert "mailto:shop@example.com" in page.values("href")
        answer = await started.client.get(path)
        assert await answer.get_data() == logo.read_bytes()
        # Its content decides, whatever the name says. Opened alone, it can do nothing.
        assert answer.headers["Content-Type"] == "image/svg+xml"
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none';")
        assert (await started.client.get("/brand/logo-00000000.svg")).status_code == 404
