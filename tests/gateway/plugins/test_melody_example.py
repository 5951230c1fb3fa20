"""docs/examples/gateway-melody, installed: a capability of a plugin's own, at every door."""

import base64
import importlib
import json
import sys
from pathlib import Path

import pytest

from gateway_check.live import cheapest_request
from tests.authorizations import decoded
from tests.conftest import nothing_charged, running
from tests.plugins.gateway_mcp.app.agent import MODERN, Agent
from tests.proof.clients import conftest as clients

EXAMPLE = Path(__file__).parents[3] / "docs/examples/gateway-melody"
METADATA = "Metadata-Version: 2.1\nName: gateway-melody\nVersion: 1.0.0\n"
URL, DIRECT = "/api/x402/melody", "/api/proxy-generate"
# 1 second is sold as 5, at 0.001 USDC each; the least price is 0.01.
LEAST, TWELVE_S = 10_000, 15_000


@pytest.fixture
def melody(tmp_path, monkeypatch):
    """Install the example as a third party's distribution."""
    info = tmp_path / "site" / "gateway_melody-1.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text("[gateway]\nmelody = gateway_melody\n")
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    monkeypatch.syspath_prepend(str(info.parent))
    yield importlib.import_module("gateway_melody")
    for name in [name for name in sys.modules if name.startswith("gateway_melody")]:
        del sys.modules[name]


@pytest.fixture
async def gateway(settings, chain, melody):
    async with running(settings) as started:
        started.chain = chain
        yield started


# A gateway on a real port, of the plugins `on_sale` and the installed ones.
site = clients.site


@pytest.fixture
def on_sale(melody):
    return []


@pytest.fixture
def settings(settings):
    return settings.changed(melody_price="0.001")


@pytest.fixture
def files(melody):
    """Recordings by name: of one second, of twelve, silent, and bad ones."""
    from gateway_melody.sample import SCALE, recording

    tone = (b"\xc0" * 8 + b"\x40" * 8) * 500
    return {
        "scale": SCALE,
        "long": recording(tone * 12),
        "silent": recording(b"\x80" * 8000),
        "cut": SCALE[:-10],
        "a picture": b"\x89PNG\r\n\x1a\n" + bytes(90),
        "an hour": recording(b"\x80" * 3_600_000, rate=1000),
        "one sample": recording(b"\x80"),
        "a rate of megahertz": recording(tone * 12, rate=37_000_000),
    }


def sent(data: bytes) -> dict[str, str]:
    return {"fileBase64": base64.b64encode(data).decode(), "fileName": "a.wav"}


async def bought(gateway, answer) -> dict:
    assert answer.status_code == 200, await answer.get_data()
    return await gateway.wait((await answer.get_json())["taskId"])


async def test_it_is_at_every_door(gateway, melody):
    manifest = await (await gateway.client.get("/.well-known/agent-manifest.json")).get_json()
    assert "sound-to-notes" in manifest["agentCapabilities"]
    (offer,) = [one for one in manifest["availableEndpoints"] if one["slug"] == "melody"]
    assert offer["unitPrice"] == {"unit": "second", "price": 0.001, "step": 5, "max": 600}
    assert offer["requiredFields"] == ["fileBase64", "fileName"]
    llms = await (await gateway.client.get("/llms.txt")).get_data(as_text=True)
    assert "0.001 USDC for each second of the file, in steps of 5; 0.01 USDC at least" in llms
    assert "the file is a WAV with samples of 8 or 16 bits" in llms
    openapi = await (await gateway.client.get("/openapi.json")).get_json()
    post = openapi["paths"][URL]["post"]
    assert post["x-payment-info"]["price"]["max"] == "0.6"
    schema = post["requestBody"]["content"]["application/json"]["schema"]
    assert "0.2 to 600 seconds" in schema["properties"]["fileBase64"]["description"]
    listed = await (await gateway.client.get("/.well-known/x402.json")).get_json()
    assert listed["items"][-1]["input"]["example"]["fileName"] == "scale.wav"
    tools = (await Agent(gateway, MODERN).ask("tools/list"))["result"]["tools"]
    (tool,) = [one for one in tools if one["name"] == "melody"]
    assert "0.01 to 0.6" in tool["description"]
    assert "fileUrl" in tool["inputSchema"]["properties"]
    page = await (await gateway.client.get("/play/melody")).get_data(as_text=True)
    assert 'accept=".wav"' in page
    assert "Notes of a recording" in page
    assert "each second" in page
    home = await (await gateway.client.get("/")).get_data(as_text=True)
    assert "notes of recordings" in home.lower()
    request = cheapest_request(gateway.services.catalog["melody"].endpoint)
    assert (request.prompt, request.attachment.name) == ("", "scale.wav")


async def test_the_402_has_the_price_of_the_file_and_an_example(gateway, files):
    answer = await gateway.client.post(URL, json=sent(files["long"]))
    assert answer.status_code == 402, await answer.get_data()
    assert (await answer.get_json())["accepts"][0]["amount"] == str(TWELVE_S)
    example = decoded(answer.headers["PAYMENT-REQUIRED"])["extensions"]["bazaar"]["info"]["input"]
    assert example["body"]["fileName"] == "scale.wav"
    answer = await gateway.client.get(URL)
    assert (await answer.get_json())["accepts"][0]["amount"] == str(LEAST)


async def test_it_is_bought_by_x402_and_served_as_midi(gateway, payer, files):
    for version, name in ((1, "X-PAYMENT"), (2, "PAYMENT-SIGNATURE")):
        header = {name: payer.header(TWELVE_S, version=version)}
        answer = await gateway.client.post(URL, json=sent(files["long"]), headers=header)
        task = await bought(gateway, answer)
        assert task["payment"]["amount"] == 0.015
        # A repeat finds its task without reading the file again.
        again = await gateway.client.post(URL, json=sent(files["long"]), headers=header)
        assert (await again.get_json())["taskId"] == task["taskId"]
        (output,) = task["result"]["outputs"]
        assert (output["mimeType"], output["seconds"]) == ("audio/midi", 12.0)
        path = output["url"].removeprefix("http://gateway.test")
        file = await gateway.client.get(path, headers={"Range": "bytes=0-3"})
        assert (file.status_code, await file.get_data()) == (206, b"MThd")
        assert file.headers["Content-Type"] == "audio/midi"
        disposition = file.headers["Content-Disposition"]
        assert disposition == f'attachment; filename="{task["taskId"]}-1.mid"'


async def test_it_is_bought_by_a_transfer_at_the_same_price(gateway, payer, files):
    body = {"slug": "melody", **sent(files["long"])}
    answer = await gateway.client.post(DIRECT, json=body | {"txHash": payer.transfer(TWELVE_S - 1)})
    assert (await answer.get_json())["code"] == "INSUFFICIENT_PAYMENT"
    answer = await gateway.client.post(DIRECT, json=body | {"txHash": payer.transfer(TWELVE_S)})
    assert (await bought(gateway, answer))["status"] == "completed"


async def test_it_is_bought_over_mcp_and_the_sound_is_in_the_result(gateway, payer, files):
    agent = Agent(gateway, MODERN)
    price = await agent.call("melody", **sent(files["long"]))
    assert price["structuredContent"]["accepts"][0]["amount"] == str(TWELVE_S)
    paid = await agent.call("melody", payer.payload(TWELVE_S, version=2), **sent(files["long"]))
    assert not paid["isError"], paid
    (sound,) = [one for one in paid["content"] if one["type"] == "audio"]
    assert sound["mimeType"] == "audio/midi"
    assert base64.b64decode(sound["data"]).startswith(b"MThd")


@pytest.mark.parametrize("http_server", ["hypercorn"], indirect=True)
async def test_it_is_bought_by_the_command_and_saved_as_midi(site, payer, files, tmp_path):
    from gateway_buyer.files import Destination, read_file
    from gateway_buyer.purchase import Buyer, Order
    from gateway_buyer.records import Records

    (tmp_path / "a.wav").write_bytes(files["long"])
    buyer = Buyer(records=Records(tmp_path / "purchases"), report=print)
    body = read_file(tmp_path / "a.wav")
    order = Order(url=site.url, slug="melody", body=body, key="key-1")
    terms = await buyer.ask_price(order, TWELVE_S)
    assert terms.price_units == TWELVE_S
    record = await buyer.pay(order, buyer.sign(order, terms, bytes(payer.account.key)))
    task = await buyer.follow(site.url, record.task_id, timeout_s=240)
    (path,) = await buyer.save(site.url, task, Destination(path=tmp_path, may_overwrite=False))
    assert (path.suffix, path.read_bytes()[:4]) == (".mid", b"MThd")


@pytest.mark.parametrize(
    "name", ["cut", "a picture", "an hour", "one sample", "a rate of megahertz"]
)
async def test_a_bad_file_is_refused_before_payment(gateway, payer, files, name):
    body, paid = sent(files[name]), {"X-PAYMENT": payer.header(LEAST)}
    async with nothing_charged(gateway, gateway.chain):
        for url, more, headers in (
            (URL, {}, {}),
            (URL, {}, paid),
            (DIRECT, {"slug": "melody", "txHash": "0x" + "ab" * 32}, {}),
        ):
            answer = await gateway.client.post(url, json=body | more, headers=headers)
            error = await answer.get_json()
            assert (answer.status_code, error["code"]) == (400, "VALIDATION_ERROR")
            assert "recording" in error["error"]
        refused = await Agent(gateway, MODERN).call("melody", **body)
        assert "recording" in json.dumps(refused["content"])


async def test_a_result_without_notes_is_a_refund_due(gateway, payer, files):
    header = {"X-PAYMENT": payer.header(LEAST)}
    answer = await gateway.client.post(URL, json=sent(files["silent"]), headers=header)
    task = await bought(gateway, answer)
    assert (task["status"], task["details"]) == ("failed", "provider_error")
    assert task["refund"]["amount"] == 0.01


async def test_a_price_signed_for_a_shorter_file_buys_no_longer_one(gateway, payer, files):
    header = {"X-PAYMENT": payer.header(LEAST)}
    async with nothing_charged(gateway, gateway.chain):
        answer = await gateway.client.post(URL, json=sent(files["long"]), headers=header)
    assert answer.status_code == 402
    assert (await answer.get_json())["accepts"][0]["amount"] == str(TWELVE_S)


def test_a_gateway_without_the_plugins_price_sells_none(settings, melody):
    from gateway.plugins.manager import PluginManager

    assert PluginManager().catalog(settings.changed(melody_price="")).find("melody") is None
