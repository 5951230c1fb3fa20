"""A picture is edited for a buyer: sold like any other request, and checked before the payment."""

import base64
import contextlib
import io
import json
import sqlite3

import attrs
import pytest
from PIL import Image

from gateway import Choice, Endpoint, Output, Result, hookimpl, usdc
from gateway.running.timing import Timing
from gateway.sandbox import Sandbox, SandboxLimits
from tests.cases import each
from tests.conftest import nothing_charged, running
from tests.plugins.gateway_mcp.app.agent import Agent

EDIT = Endpoint(
    slug="edit",
    title="An edit",
    description="Another picture.",
    model="brush-1",
    provider="scripted",
    capability="image-editing",
    price_units=usdc("0.02"),
    required_fields=("prompt", "fileBase64", "fileName"),
    file_extensions=(".png", ".jpg", ".webp"),
    output_format=Choice(values=("png", "jpg", "webp"), default="png"),
)
PROMPT = "make it winter"


def picture(size=(64, 64), kind="PNG", colour="red") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, kind, compress_level=1)
    return file.getvalue()


def body(data=None, name="photo.png", **fields) -> dict:
    data = picture() if data is None else data
    encoded = base64.b64encode(data).decode()
    return {"prompt": PROMPT, "fileBase64": encoded, "fileName": name, **fields}


class EditPlugin:
    __name__ = "edit-plugin"

    def __init__(self, provider) -> None:
        self.provider = provider

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        register(EDIT, self.provider)
        register(attrs.evolve(EDIT, slug="small", max_picture_bytes=20_000), self.provider)


@pytest.fixture
async def studio(settings, provider, chain, clock):
    """A gateway whose provider returns a blue picture for each edit."""
    made = Output(data=picture((96, 64), colour="blue"), media_type="image/png")
    provider.script = [Result(outputs=(made,)) for _ in range(3)]
    async with running(settings, more=[EditPlugin(provider)], now=clock) as started:
        started.chain = chain
        await started.services.payments.cutoff_block()
        yield started


async def ask(studio, sent, header=None):
    headers = {"X-PAYMENT": header} if header else {}
    return await studio.client.post("/api/x402/edit", json=sent, headers=headers)


async def test_an_edit_is_quoted_paid_and_delivered_in_the_wanted_format(studio, payer, provider):
    sent = body(output_format="webp")
    quoted = await ask(studio, sent)
    assert quoted.status_code == 402
    assert (await quoted.get_json())["accepts"][0]["amount"] == "20000"
    started = await (await ask(studio, sent, payer.header())).get_json()
    task = await studio.wait(started["taskId"])
    assert (task["status"], task["capability"]) == ("completed", "image-editing")
    (output,) = task["result"]["outputs"]
    assert (output["mimeType"], output["width"], output["height"]) == ("image/webp", 96, 64)
    (request,) = provider.requests
    assert (request.prompt, request.attachment.name) == (PROMPT, "photo.png")
    assert request.attachment.data == picture()


async def test_a_photo_is_made_small_enough_for_its_vendor(studio, payer, provider):
    file = io.BytesIO()
    photo = Image.effect_noise((300, 300), 30)
    photo.save(file, "JPEG", quality=95)
    assert len(file.getvalue()) > 25_000
    sent = body(file.getvalue(), "photo.jpg")
    for slug, is_smaller in (("edit", False), ("small", True)):
        header = {"X-PAYMENT": payer.header()}
        answer = await studio.client.post(f"/api/x402/{slug}", json=sent, headers=header)
        assert answer.status_code == 200, await answer.get_json()
        await studio.wait((await answer.get_json())["taskId"])
        assert (len(provider.requests[-1].attachment.data) <= 20_000) is is_smaller


async def test_a_transfer_pays_for_an_edit_too(studio, payer):
    sent = body(slug="edit", txHash=payer.transfer(20_000))
    answer = await studio.client.post("/api/proxy-generate", json=sent)
    started = await answer.get_json()
    assert started["paidAmount"] == 0.02
    assert (await studio.wait(started["taskId"]))["status"] == "completed"


async def test_an_earlier_release_reads_a_paid_edit(studio, payer):
    assert (await ask(studio, body(), payer.header())).status_code == 200
    path = studio.services.settings.data_dir / "gateway.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        (stored,) = db.execute("SELECT request FROM tasks").fetchone()
    # It reads no other field.
    assert set(json.loads(stored)) == {
        *("prompt", "aspect_ratio", "output_format", "resolution", "pages", "file_name")
    }


async def test_the_picture_belongs_to_the_request_that_a_payment_is_for(studio, payer):
    header = payer.header()
    first = await (await ask(studio, body(), header)).get_json()
    again = await (await ask(studio, body(), header)).get_json()
    assert again["taskId"] == first["taskId"]
    other = await ask(studio, body(picture(colour="green")), header)
    assert other.status_code == 402


async def test_the_picture_is_deleted_when_the_task_has_ended(studio, payer):
    started = await (await ask(studio, body(), payer.header())).get_json()
    await studio.wait(started["taskId"])
    path = studio.services.settings.data_dir / "gateway.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM task_files").fetchone() == (0,)


REFUSED = {
    "no prompt": ({"prompt": None}, "prompt is missing."),
    "no picture": ({"fileBase64": None}, "fileBase64 is missing."),
    "no name": ({"fileName": None}, "fileBase64 needs a fileName of 1 to 255 characters."),
    "a document": (body(b"%PDF-1.4", "a.pdf"), "fileName must end in one of: .png, .jpg, .webp."),
    "another format": (
        body(picture(), "a.jpg"),
        "The name of the file ends in .jpg, but it is a PNG.",
    ),
    "no picture inside": (
        body(b"%PDF-1.4"),
        "The picture is damaged, or is no PNG, JPEG or WebP.",
    ),
    "half a picture": (
        body(picture((300, 300))[:-30]),
        "The picture is damaged, or is no PNG, JPEG or WebP.",
    ),
    "too small": (
        body(picture((64, 63))),
        "The picture has 64 x 63 pixels; each side needs 64 or more.",
    ),
    "too large": (
        body(picture((5001, 5000))),
        "The picture has 5,001 x 5,000 pixels; up to 25,000,000 in all are taken.",
    ),
}


@each("fault", list(REFUSED))
@each("is_paid", [False, True])
async def test_a_doomed_request_is_refused_in_one_sentence_and_nothing_is_charged(
    studio, payer, chain, fault, is_paid
):
    changes, sentence = REFUSED[fault]
    async with nothing_charged(studio, chain):
        answer = await ask(studio, body() | changes, payer.header() if is_paid else None)
        reply = await answer.get_json()
    assert (answer.status_code, reply["code"]) == (400, "VALIDATION_ERROR")
    assert reply["error"] == sentence


async def test_a_file_above_the_limit_is_refused(studio):
    answer = await ask(studio, body(b"\x89PNG" + bytes(7_500_000)))
    assert answer.status_code == 413


async def test_a_picture_that_is_looked_at_for_too_long_is_answered_all_the_same(studio):
    studio.services.timing = Timing(validation_s=0.2)
    studio.services.intake.sent_pictures._sandbox = Sandbox(
        function="page_counters:sleep", limits=SandboxLimits(wall_s=5.0)
    )
    answer = await ask(studio, body())
    reply = await answer.get_json()
    assert (answer.status_code, reply["code"]) == (500, "EXECUTION_ERROR")
    assert "cannot be checked now" in reply["error"]


async def test_every_document_for_agents_offers_it(studio):
    manifest = await (await studio.client.get("/.well-known/agent-manifest.json")).get_json()
    assert "image-editing" in manifest["agentCapabilities"]
    (listed,) = [one for one in manifest["availableEndpoints"] if one["slug"] == "edit"]
    assert listed["requiredFields"] == ["prompt", "fileBase64", "fileName"]
    api = await (await studio.client.get("/openapi.json")).get_json()
    asked = api["paths"]["/api/x402/edit"]["post"]["requestBody"]["content"]["application/json"]
    assert set(asked["schema"]["required"]) == {"prompt", "fileBase64", "fileName"}
    assert "64 pixels or more a side" in asked["schema"]["properties"]["fileBase64"]["description"]
    text = await (await studio.client.get("/llms.txt")).get_data(as_text=True)
    assert "capability: image-editing" in text
    assert "each side 64 pixels or more, 25,000,000 pixels at most in all" in text


async def test_its_example_is_a_request_that_is_quoted(studio):
    api = await (await studio.client.get("/openapi.json")).get_json()
    asked = api["paths"]["/api/x402/edit"]["post"]["requestBody"]["content"]["application/json"]
    assert (await ask(studio, asked["example"])).status_code == 402


async def test_an_agent_buys_an_edit_by_its_tool(studio, payer):
    agent = Agent(studio)
    asked = await agent.call("edit", **body())
    assert asked["structuredContent"]["accepts"][0]["amount"] == "20000"
    bought = await agent.call("edit", payer.payload(20_000, version=2), **body())
    assert bought["structuredContent"]["result"]["outputs"][0]["mimeType"] == "image/png"
    refused = await agent.call("edit", **body(b"%PDF-1.4"))
    assert "is damaged" in json.loads(refused["content"][0]["text"])["error"]


async def test_its_page_asks_for_a_picture_and_offers_one_to_try(studio):
    page = await (await studio.client.get("/play/edit")).get_data(as_text=True)
    assert '<label class="label" for="file">Picture</label>' in page
    assert 'accept=".png,.jpg,.webp"' in page
    facts = json.loads(page.split('id="page">')[1].split("</script>")[0])
    assert facts["fileNoun"] == "picture"
    sample = await studio.client.get(facts["sample"])
    assert sample.mimetype == "image/webp"
    data = base64.b64encode(await sample.get_data()).decode()
    assert (await ask(studio, body(fileBase64=data, name="sample.webp"))).status_code == 402
