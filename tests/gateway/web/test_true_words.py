"""Promises of the pages and documents are true of this gateway, with its offers and its state."""

import json
import re
from html import unescape

import attrs
import pytest

from gateway.catalog.catalog import Catalog
from gateway.domain import GenerationRequest
from gateway.domain.offers import Attachment
from gateway.web.routes.files import static_folder
from gateway_demo.sample import SCHEMA, sample_pdf
from gateway_documents.provider import DocumentParser
from tests.conftest import running
from tests.gateway.operation.test_obstacles import check_now, wallet_without_gas

PAGES = static_folder() / "pages"


async def words_of(gateway, path: str) -> str:
    text = await (await gateway.client.get(path)).get_data(as_text=True)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def withdraw(catalog: Catalog, *kept: str) -> None:
    """Take every offer off sale but some."""
    for one in catalog.everything():
        if one.endpoint.slug not in kept:
            one.upstream.circuit.trip("It rests.", pause_s=600)


# -- the offers


@pytest.mark.parametrize(
    ("kept", "goods"),
    [
        (("document-parser",), "Documents as text from 0.01 USDC each."),
        (("picture", "paper"), "Pictures and documents as text from 0.01 USDC each."),
        (
            ("sandbox-image", "sandbox-image-edit"),
            "Pictures and edits of your pictures from 0.02 USDC each.",
        ),
    ],
)
async def test_the_front_page_names_only_what_is_on_sale(settings, provider, kept, goods):
    async with running(attrs.evolve(settings, sandbox=True), provider) as gateway:
        withdraw(gateway.services.catalog, *kept)
        assert goods in await words_of(gateway, "/")


async def test_a_prompt_that_changes_nothing_is_not_asked_for(gateway):
    form = await (await gateway.client.get("/play/document-parser")).get_data(as_text=True)
    assert "<textarea" not in form
    api = await (await gateway.client.get("/openapi.json")).get_json()
    post = api["paths"]["/api/x402/document-parser"]["post"]
    fields = post["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert fields["prompt"]["description"].startswith("Ignored")
    assert "<textarea" in await (await gateway.client.get("/play/picture")).get_data(as_text=True)


async def test_the_parser_gives_the_same_with_and_without_a_prompt():
    parser = DocumentParser()
    file = Attachment(name="a.txt", data=b"# Invoice\n\nItem: tea\n\nTotal: 9 USD\n")
    plain = await parser.submit(GenerationRequest(attachment=file), None)
    asked = GenerationRequest(attachment=file, prompt="Only the total, please")
    assert (await parser.submit(asked, None)).text == plain.text


# -- the samples


async def test_the_samples_are_what_the_parser_makes_of_the_demos_document():
    parser = DocumentParser()
    file = Attachment(name="document.pdf", data=sample_pdf())
    parsed = await parser.submit(GenerationRequest(attachment=file), None)
    assert parsed.text.startswith((PAGES / "document-sample.md").read_text())
    assert parsed.text.startswith("# Quarterly Report")
    data = json.loads(await parser.extract(json.dumps(SCHEMA), parsed.text))
    assert data == json.loads((PAGES / "extraction-sample.json").read_text())


# -- the code to copy


async def code_of(gateway, language: str) -> str:
    page = await (await gateway.client.get("/play/picture")).get_data(as_text=True)
    shown = re.search(rf'data-language="{language}".*?<code>(.*?)</code>', page, re.DOTALL)[1]
    return unescape(re.sub(r"<[^>]+>", "", shown))


async def test_the_code_names_its_file_and_one_variable_for_the_key(gateway):
    readme = (static_folder().parent / "README.md").read_text()
    assert "BUYER_KEY" in readme
    for language, file in (("python", "buy.py"), ("typescript", "buy.mts")):
        code = await code_of(gateway, language)
        assert f"save as {file}" in code.splitlines()[0]
        assert "BUYER_KEY" in code
        assert "PRIVATE_KEY" not in code


async def test_the_settings_of_mcp_clients_do_not_pass_for_a_purchase(gateway):
    code = await code_of(gateway, "mcp")
    assert code.index("show the price and a link") < code.index("claude mcp add")


# -- a gateway that cannot sell everything


async def test_without_gas_the_pages_offer_the_transfer_that_works(
    settings, provider, chain, gas_key
):
    poor, _ = wallet_without_gas(settings, gas_key, chain)
    async with running(poor, provider) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        await check_now(gateway)
        front, form = await words_of(gateway, "/"), await words_of(gateway, "/play/picture")
        # The shop is open, so its first page says the same as the form, with the refund promise.
        assert gateway.services.refund_promise().sentence in front.split("On offer")[0]
        for page in (front, form):
            assert "By transfer only" in page
            assert "You can pay by a USDC transfer from any wallet." in page
            assert "0 of" not in page
            assert "Off sale now" not in page
            # The code that it speaks of.
            assert "/api/proxy-generate" in page


async def test_visitors_read_nothing_of_requests_that_they_did_not_make(gateway):
    await gateway.silence_background()
    gateway.services.settlements.obstacles.note_unreachable()
    for path in ("/", "/play/picture"):
        page = await words_of(gateway, path)
        assert (
            "The gateway cannot read the chain now, so it sells nothing. Try again later." in page
        )
        assert not re.search(r"(this|same) request", page.split("How a purchase goes")[0])
        assert "charged nothing" not in page


async def test_a_refused_payment_is_said_to_have_taken_nothing_only_if_it_did(
    gateway, payer, chain
):
    url, body = "/api/x402/picture", {"prompt": "a boat"}

    async def post(header: str, **fields) -> dict:
        answer = await gateway.client.post(url, json=body | fields, headers={"X-PAYMENT": header})
        return answer.status_code, await answer.get_json()

    status, refused = await post(payer.header(1))
    assert (status, refused["charged"]) == (402, False)
    header = payer.header()
    status, bought = await post(header)
    assert status == 200
    await gateway.wait(bought["taskId"])
    # It has paid for another request.
    status, used = await post(header, prompt="a ship")
    assert (status, "charged" in used) == (402, False)
