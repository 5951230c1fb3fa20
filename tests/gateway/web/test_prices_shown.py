"""Prices by request, and limits, in every description."""

import re

import pytest
from document_sales import buy_parsing, pdf_of

from tests.conftest import running
from tests.gateway.web.descriptions import MANIFEST, Priced, get_json


@pytest.fixture
async def priced(settings, provider):
    async with running(settings, provider, more=(Priced(),)) as gateway:
        yield gateway


async def entry_of(gateway, slug) -> dict:
    listed = (await get_json(gateway, MANIFEST))["availableEndpoints"]
    (found,) = [entry for entry in listed if entry["slug"] == slug]
    return found


async def section_of(gateway, slug) -> str:
    """Return the section about an endpoint in /llms.txt."""
    text = (await (await gateway.client.get("/llms.txt")).get_data()).decode()
    return re.search(rf"### {slug}: .*?(?=\n\n|\n###|\nWhere)", text, re.DOTALL)[0]


async def test_a_price_per_page_is_told_and_quoted(priced):
    entry = await entry_of(priced, "each-page")
    assert (entry["price"], entry["pricePerPage"]) == (0.02, 0.03)
    section = await section_of(priced, "each-page")
    assert "- 0.03 USDC for each page of the document, and 0.02 USDC at least" in section
    for pages, amount in ((1, "30000"), (7, "210000")):
        answer = await buy_parsing(priced, None, "each-page", pdf_of(pages))
        assert (await answer.get_json())["accepts"][0]["amount"] == amount


async def test_the_manifest_tells_price_steps_and_limits(priced):
    entry = await entry_of(priced, "steps")
    assert entry["price"] == 0.02
    assert entry["priceSteps"] == [
        {"price": 0.05, "resolution": "2K"},
        {"price": 0.12, "resolution": "4K"},
    ]
    assert entry["maxPromptChars"] == 1500
    entry = await entry_of(priced, "pages")
    assert entry["priceSteps"] == [{"price": 0.05, "minPages": 51}]
    assert entry["maxPages"] == 1200
    assert "optionalFields" not in entry
    assert "priceSteps" not in await entry_of(priced, "picture")


def price_of(entry: dict, wanted: dict) -> float:
    """Return the price of a request by the manifest alone."""
    default = entry["optionalFields"]["resolution"]["default"]
    asked = wanted.get("resolution", default)
    fitting = [step["price"] for step in entry["priceSteps"] if step["resolution"] == asked]
    return [entry["price"], *fitting][-1]


@pytest.mark.parametrize("wanted", [{}, *({"resolution": value} for value in ("1K", "2K", "4K"))])
async def test_the_manifest_and_the_402_give_the_price_that_a_transfer_must_pay(
    priced, payer, wanted
):
    await priced.services.payments.cutoff_block()
    units = round(price_of(await entry_of(priced, "steps"), wanted) * 10**6)
    body = {"slug": "steps", "prompt": "a boat", **wanted}
    answer = await priced.client.post("/api/x402/steps", json=body)
    assert (await answer.get_json())["accepts"][0]["amount"] == str(units)
    for paid, status in ((units - 1, 400), (units, 200)):
        answer = await priced.client.post(
            "/api/proxy-generate", json=body | {"txHash": payer.transfer(paid)}
        )
        assert answer.status_code == status


async def test_llms_txt_tells_price_steps_and_limits(priced):
    assert (await section_of(priced, "steps")).splitlines()[2:] == [
        "- capability: text-to-image; model: pixel",
        "- 0.05 USDC instead with resolution 2K",
        "- 0.12 USDC instead with resolution 4K",
        "- required fields: prompt",
        "- prompt: at most 1,500 characters",
        (
            "- resolution (optional): 1K, 2K, 4K; default 1K; "
            "pixels at least: 580,000 at 1K, 2,300,000 at 2K, 7,900,000 at 4K"
        ),
    ]
    assert (await section_of(priced, "pages")).splitlines()[2:] == [
        "- capability: document-parsing; model: pixel",
        "- 0.05 USDC instead for a document of 51 pages or more",
        "- required fields: fileBase64, fileName",
        "- fileBase64: the file in Base64, up to 7.5 MB decoded; fileName ends in one of .pdf",
        "- at most 1,200 pages",
    ]
    assert "instead" not in await section_of(priced, "picture")
    text = (await (await priced.client.get("/llms.txt")).get_data()).decode()
    assert "the last one that fits a request is its price" in text
