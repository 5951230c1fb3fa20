"""The snippets of docs/plugins.md that are in no package of docs/examples."""

import io
import urllib.request

from gateway import Alarm, Choice, Endpoint, GenerationRequest, PriceStep, usdc
from gateway.plugins.manager import PluginManager
from gateway.plugins.registration import endpoint_offer
from tests.conftest import ScriptedProvider
from tests.proof.distribution import pager_plugin

picture = Endpoint(
    slug="acme-picture",
    title="A picture by Acme",
    description="Makes a picture from a description in words.",
    model="acme-1",
    provider="acme",
    capability="text-to-image",
    price_units=usdc("0.05"),
    price_steps=(PriceStep(price_units=usdc("0.20"), resolution="4K"),),
    resolution=Choice(values=("1K", "4K"), default="1K"),
)


def test_the_picture_costs_what_its_steps_say():
    endpoint_offer(picture, ScriptedProvider())
    prices = [picture.price_of(GenerationRequest(resolution=size)) for size in ("1K", "4K", None)]
    assert prices == [usdc("0.05"), usdc("0.20"), usdc("0.05")]


edit = Endpoint(
    slug="acme-edit",
    title="Acme Edit",
    description="Changes a picture as a prompt says.",
    model="edit-1",
    provider="acme",
    capability="image-editing",
    price_units=usdc("0.08"),
    required_fields=("prompt", "fileBase64", "fileName"),
    file_extensions=(".png", ".jpg", ".jpeg", ".webp"),
    output_format=Choice(values=("png", "jpg", "webp"), default="png"),
)

parse = Endpoint(
    slug="acme-parse",
    title="Acme Parse",
    description="Turns a PDF into Markdown.",
    model="parse-1",
    provider="acme",
    capability="document-parsing",
    price_units=usdc("0.02"),
    price_per_page=usdc("0.01"),
    max_pages=200,
    required_fields=("fileBase64", "fileName"),
    file_extensions=(".pdf", ".docx"),
)


def test_the_document_costs_what_the_page_says():
    endpoint_offer(parse, ScriptedProvider())
    prices = [parse.price_of(GenerationRequest(pages=pages)) for pages in (7, 1, None)]
    assert prices == [usdc("0.07"), usdc("0.02"), usdc("0.02")]


extract = Endpoint(
    slug="acme-extract",
    title="Acme Extract",
    description="Finds what you ask for in a document, and returns it as JSON.",
    model="extract-1",
    provider="acme",
    capability="document-extraction",
    price_units=usdc("0.06"),
    price_per_page=usdc("0.03"),
    required_fields=("prompt", "fileBase64", "fileName"),
    file_extensions=(".pdf", ".png", ".jpg"),
    max_pages=20,
)


def test_the_endpoint_that_extracts_data_may_be_registered():
    endpoint_offer(extract, ScriptedProvider())


def test_the_endpoint_that_edits_pictures_may_be_registered():
    endpoint_offer(edit, ScriptedProvider())


def test_the_pager_is_told_of_an_alarm(monkeypatch):
    sent = []

    def answer(request, timeout):
        sent.append((request.method, request.full_url, request.data))
        return io.BytesIO()

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    alarm = Alarm(
        event="raised",
        key="gas",
        urgency="soon",
        title="The key is low",
        text="It pays for 3 more sales.",
        todo="",
        link="https://gateway.example.com/admin",
        since=0.0,
    )
    (tell,) = PluginManager([pager_plugin]).notifiers().values()
    tell(alarm)
    assert sent == [
        (
            "POST",
            "http://pager.internal/say",
            b"soon: The key is low. It pays for 3 more sales. https://gateway.example.com/admin",
        )
    ]
