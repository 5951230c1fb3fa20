"""POST /api/proxy-generate: the order of checks, the fields of spec §2.2, and silent chains."""
# ruff: noqa: ASYNC110 - polls from outside, without an event

import asyncio
import base64
import io
import json
import time

import attrs
import pytest
from PIL import Image
from werkzeug import Response

from gateway import Output, Result
from gateway_demo.chain import PlayChain
from tests.cases import each
from tests.conftest import WALLET, nothing_charged, running

URL = "/api/proxy-generate"
HASH = "0x" + "ab" * 32
FILE = {"fileBase64": base64.b64encode(b"hello").decode(), "fileName": "a.txt"}
BODY = {"slug": "picture", "prompt": "a boat", "txHash": HASH}


async def claim(gateway, tx_hash, **changes):
    body = {**BODY, "txHash": tx_hash, **changes}
    return await gateway.client.post(URL, json=body)


# -- the order of checks: each request breaks two rules, and gets the error of the earlier one


@pytest.mark.parametrize("body", [b"", b"{", b"x" * 12_000_000])
async def test_the_rate_limit_comes_before_the_body(settings, provider, chain, body):
    async with running(attrs.evolve(settings, limit_direct="1/60s"), provider) as gateway:
        await gateway.client.post(URL)
        answer = await gateway.client.post(URL, data=body)
    assert answer.status_code == 429
    assert set(await answer.get_json()) == {"error"}


async def test_the_body_comes_before_the_slug(gateway):
    answer = await claim(gateway, "0x12", slug="nothing")
    assert (await answer.get_json())["code"] == "VALIDATION_ERROR"


async def test_the_slug_comes_before_the_payment_and_whether_we_can_serve(gateway, payer):
    gateway.services.readiness.is_draining = True
    answer = await claim(gateway, payer.transfer(20_000), slug="nothing")
    assert answer.status_code == 404
    assert (await answer.get_json())["code"] == "NOT_FOUND"


async def test_the_endpoints_choices_come_before_the_payment(gateway):
    answer = await claim(gateway, HASH, resolution="9K")
    assert (await answer.get_json())["code"] == "VALIDATION_ERROR"


async def test_the_provider_may_refuse_before_the_payment(gateway, payer, provider, chain):
    tx_hash = payer.transfer(20_000)
    provider.refuse = "This model draws no boats."
    async with nothing_charged(gateway, chain):
        answer = await claim(gateway, tx_hash)
    assert (await answer.get_json())["code"] == "VALIDATION_ERROR"
    provider.refuse = None
    assert (await claim(gateway, tx_hash)).status_code == 200


@pytest.mark.parametrize("known", [True, False])
async def test_where_we_cannot_serve_no_payment_is_looked_at(gateway, payer, chain, known):
    tx_hash = payer.transfer(20_000) if known else HASH
    gateway.services.readiness.is_draining = True
    async with nothing_charged(gateway, chain):
        answer = await claim(gateway, tx_hash)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "20"
    assert (await answer.get_json())["code"] == "EXECUTION_ERROR"


async def test_a_full_disk_uses_up_no_hash(settings, provider, payer, chain):
    async with running(settings, provider) as gateway:
        await gateway.services.payments.cutoff_block()
    tx_hash = payer.transfer(20_000)
    async with running(attrs.evolve(settings, min_free_disk_mb=10**9), provider) as gateway:
        assert (await (await claim(gateway, tx_hash)).get_json())["code"] == "EXECUTION_ERROR"
    async with running(settings, provider) as gateway:
        assert (await claim(gateway, tx_hash)).status_code == 200


# -- spec §2.2


WRONG = {
    "no slug": {"slug": None},
    "no txHash": {"txHash": None},
    "no prompt": {"prompt": None},
    "empty prompt": {"prompt": ""},
    "endless prompt": {"prompt": "x" * 10_001},
    "empty prompt beside a file": {"prompt": "", **FILE},
    "file without name": {"slug": "paper", "fileBase64": FILE["fileBase64"]},
    "file with an empty name": {"slug": "paper", **FILE, "fileName": ""},
    "no Base64": {"slug": "paper", **FILE, "fileBase64": "***"},
    "cut Base64": {"slug": "paper", **FILE, "fileBase64": "aGk"},
    "unknown ending": {"slug": "paper", **FILE, "fileName": "a.exe"},
    "a document endpoint without file": {"slug": "paper"},
    "an image endpoint with file": FILE,
    "ratio": {"aspect_ratio": "2:1"},
    "ratio not of this endpoint": {"aspect_ratio": "9:16"},
    "format": {"output_format": "gif"},
    "format in capitals": {"output_format": "PNG"},
    "resolution": {"resolution": "9K"},
}


@each("changes", WRONG)
async def test_a_body_that_breaks_the_table_is_refused(gateway, payer, chain, changes):
    tx_hash = payer.transfer(20_000)
    body = {**BODY, "txHash": tx_hash, **changes}
    async with nothing_charged(gateway, chain):
        answer = await gateway.client.post(URL, json=body)
        assert answer.status_code == 400
        assert (await answer.get_json())["code"] == "VALIDATION_ERROR"
    assert (await claim(gateway, tx_hash)).status_code == 200  # the hash is not used up


@each(
    "tx_hash",
    [
        "",
        "0x",
        "ab" * 32,
        "0X" + "ab" * 32,
        HASH[:-1],
        HASH + "a",
        f" {HASH}",
        f"{HASH}\n",
        "0x" + "g" * 64,
    ],
)
async def test_a_malformed_hash_is_refused(gateway, tx_hash):
    answer = await claim(gateway, tx_hash)
    assert answer.status_code == 400
    assert (await answer.get_json())["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize("prompt", ["x", "x" * 10_000, "😀" * 10_000, "  ", "[" * 10_000, "\0"])
async def test_a_prompt_may_be_any_text_up_to_10000_characters(gateway, payer, provider, prompt):
    answer = await claim(gateway, payer.transfer(20_000), prompt=prompt)
    assert answer.status_code == 200
    await gateway.wait((await answer.get_json())["taskId"])
    assert provider.requests[0].prompt == prompt


def wide_picture() -> bytes:
    """Return a PNG of the ratio 16:9."""
    Image.radial_gradient("L").resize((160, 90)).save(file := io.BytesIO(), "png")
    return file.getvalue()


async def test_the_provider_gets_every_field_and_the_defaults(gateway, payer, provider):
    provider.script = [Result(outputs=(Output(data=wide_picture(), media_type="image/png"),)), None]
    chosen = {"aspect_ratio": "16:9", "output_format": "webp", "resolution": "2K"}
    for fields in (chosen, {}):
        answer = await claim(gateway, payer.transfer(20_000), **fields)
        await gateway.wait((await answer.get_json())["taskId"])
    first, second = (attrs.asdict(request) for request in provider.requests)
    assert {name: first[name] for name in chosen} == chosen
    assert {name: second[name] for name in chosen} == {
        "aspect_ratio": "1:1",
        "output_format": "png",
        "resolution": "1K",
    }


# -- files


async def test_a_document_is_parsed_without_a_prompt(gateway, payer, provider):
    body = {"slug": "paper", "txHash": payer.transfer(10_000), **FILE}
    answer = await gateway.client.post(URL, json=body)
    assert answer.status_code == 200
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["result"]["text"] == "# a.txt\n"
    assert provider.requests[0].attachment.data == b"hello"


async def test_x402_takes_a_file_as_well(gateway, payer, provider):
    answer = await gateway.client.post(
        "/api/x402/paper", json=FILE, headers={"X-PAYMENT": payer.header(10_000)}
    )
    assert answer.status_code == 200
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["result"]["text"] == "# a.txt\n"


def _of_size(count: int) -> str:
    return base64.b64encode(bytes(count)).decode()


@pytest.mark.parametrize("count", [7_500_000, 7_500_001])
@pytest.mark.parametrize("url", [URL, "/api/x402/paper"])
async def test_a_file_may_have_7_5_mb_and_no_byte_more(gateway, payer, provider, url, count):
    body = {**FILE, "fileBase64": _of_size(count), "prompt": "x" * 10_000}
    if url == URL:
        body |= {"slug": "paper", "txHash": payer.transfer(10_000)}
    answer = await gateway.client.post(url, json=body, headers={"X-PAYMENT": payer.header(10_000)})
    if count == 7_500_000:
        assert answer.status_code == 200
        await gateway.wait((await answer.get_json())["taskId"])
        assert len(provider.requests[0].attachment.data) == count
    else:
        assert answer.status_code == 413
        assert (await answer.get_json())["code"] == "VALIDATION_ERROR"


# -- a chain that does not answer


@pytest.fixture
def node(httpserver, chain):
    """A JSON-RPC endpoint that responds according to `node.mode`, by default like the chain."""

    def answer(request):
        node.asked += 1
        if node.mode == "slow":
            time.sleep(1.6)
        if node.mode in (None, "slow"):
            return Response(chain.rpc.answer(request.data), content_type="application/json")
        return node.mode

    class node:  # noqa: N801 - one object, not a kind
        mode = None
        asked = 0
        url = httpserver.url_for("/rpc")

    httpserver.expect_request("/rpc").respond_with_handler(answer)
    return node


def _json(text: str, status: int = 200) -> Response:
    return Response(text, status=status, content_type="application/json")


def _error(code: int, message: str, status: int = 200) -> Response:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}}
    return _json(json.dumps(error), status)


FAULTS = {
    "429": _error(-32005, "rate limited", 429),
    "rate limited with 200": _error(-32016, "over rate limit"),
    "503": Response("down", status=503),
    "no JSON": Response("<html>busy</html>", content_type="text/html"),
    "empty": _json(""),
    "null": _json("null"),
    "a list": _json("[]"),
    "no result": _json('{"jsonrpc":"2.0","id":1}'),
    "an empty receipt": _json('{"jsonrpc":"2.0","id":1,"result":{}}'),
    "result is text": _json('{"jsonrpc":"2.0","id":1,"result":"0x1"}'),
    "hangs": "slow",
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_silence_is_an_internal_error_and_uses_up_nothing(
    settings, provider, payer, chain, node, fault
):
    # Refusals are retried for this time.
    settings = attrs.evolve(settings, rpc_urls=(node.url,), rpc_timeout=0.8)
    async with running(settings, provider) as gateway:
        await gateway.silence_background()
        await gateway.services.payments.cutoff_block()
        (endpoint,) = await gateway.services.chain._rpc.connect()
        # Wait for correct responses, even on a slow machine.
        endpoint.timeout_s = 30.0
        tx_hash = payer.transfer(20_000)
        if fault == "slow":
            endpoint.timeout_s = 0.8
        node.mode = fault
        async with nothing_charged(gateway, chain):
            answer = await claim(gateway, tx_hash)
        endpoint.timeout_s = 30.0
        assert answer.status_code == 500
        body = await answer.get_json()
        assert body["code"] == "INTERNAL_ERROR"
        assert "/rpc" not in json.dumps(body)  # an RPC address may hold a key
        node.mode = None
        async with asyncio.timeout(60):  # one that hung still hangs for a moment
            while (answer := await claim(gateway, tx_hash)).status_code == 500:
                await asyncio.sleep(0.05)
        assert answer.status_code == 200


async def test_a_receipt_of_another_transaction_pays_for_nothing(
    settings, provider, payer, chain, node
):
    settings = attrs.evolve(settings, rpc_urls=(node.url,))
    async with running(settings, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        receipt = chain.receipt(payer.transfer(20_000))
        node.mode = _json(json.dumps({"jsonrpc": "2.0", "id": 1, "result": receipt}))
        answer = await claim(gateway, HASH)
        assert (await answer.get_json())["code"] == "INTERNAL_ERROR"


async def test_a_hash_that_the_chain_does_not_know_costs_six_calls(settings, provider, node):
    settings = attrs.evolve(settings, rpc_urls=(node.url,), tx_patience=4.0)
    async with running(settings, provider) as gateway:
        await gateway.silence_background()
        await gateway.services.store.meta("floor_block", lambda: "0")
        asked = node.asked
        answer = await claim(gateway, HASH)
        assert (await answer.get_json())["code"] == "TX_NOT_FOUND"
        assert node.asked == asked + 6


async def test_a_transfer_costs_a_call_and_one_for_its_block_at_most(
    settings, provider, payer, chain, node
):
    settings = attrs.evolve(settings, rpc_urls=(node.url,))
    async with running(settings, provider) as gateway:
        await gateway.silence_background()
        await gateway.services.store.meta("floor_block", lambda: "0")
        chain.set_automine(False)
        hashes = [payer.transfer(20_000) for _ in range(3)]
        chain.set_automine(True)
        asked = node.asked
        answers = await asyncio.gather(*(claim(gateway, tx_hash) for tx_hash in hashes))
        assert [answer.status_code for answer in answers] == [200] * 3
        assert asked + 4 <= node.asked <= asked + 6


async def test_a_transaction_that_waits_is_waited_for(settings, provider, payer, chain, node):
    settings = attrs.evolve(settings, rpc_urls=(node.url,), tx_patience=30.0)
    async with running(settings, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        await gateway.services.settlements._periodic.stop()
        chain.set_automine(False)
        tx_hash, asked = payer.transfer(20_000), node.asked
        claimed = asyncio.create_task(claim(gateway, tx_hash))
        while node.asked < asked + 2:  # it is known, and has no receipt
            await asyncio.sleep(0.02)
        chain.set_automine(True)
        assert (await claimed).status_code == 200


async def test_the_second_endpoint_answers_where_the_first_does_not(
    settings, provider, payer, chain, node
):
    settings = attrs.evolve(settings, rpc_urls=(node.url, chain.rpc_url))
    async with running(settings, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        # A background read that fails now would make the first endpoint rest.
        await gateway.silence_background()
        for fault in ("503", "429", "no JSON", "an empty receipt"):
            gateway.services.chain._rpc._endpoints[0].cooldown.end()
            node.mode, node.asked = FAULTS[fault], 0
            assert (await claim(gateway, payer.transfer(20_000))).status_code == 200
            assert node.asked > 0


async def test_an_endpoint_that_lags_behind_is_not_the_last_word(
    settings, provider, payer, chain, node
):
    settings = attrs.evolve(settings, rpc_urls=(node.url, chain.rpc_url))
    async with running(settings, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        tx_hash = payer.transfer(20_000)
        node.mode = _json('{"jsonrpc":"2.0","id":1,"result":null}')
        assert (await claim(gateway, tx_hash)).status_code == 200


@pytest.mark.parametrize("chain_id", [1, 84532])
async def test_an_endpoint_of_another_chain_is_never_believed(
    settings, provider, payer, chain, chain_id
):
    with PlayChain(chain_id=chain_id) as other:
        other.fund(payer.account.address)
        tx_hash = other.transfer_usdc(payer.account.key, WALLET, 20_000)
        settings = attrs.evolve(settings, rpc_urls=(other.rpc_url,))
        async with running(settings, provider) as gateway:
            answer = await claim(gateway, tx_hash)
            assert (await answer.get_json())["code"] == "INTERNAL_ERROR"
        settings = attrs.evolve(settings, rpc_urls=(other.rpc_url, chain.rpc_url))
        async with running(settings, provider) as gateway:
            assert (await (await claim(gateway, tx_hash)).get_json())["code"] == "TX_NOT_FOUND"
            assert (await claim(gateway, payer.transfer(20_000))).status_code == 200


async def test_the_first_buyer_after_a_silent_start_is_not_turned_away(
    settings, provider, payer, node
):
    """The chain was down when the database was created; the transfer is newer than the database."""
    node.mode = FAULTS["503"]
    settings = attrs.evolve(settings, rpc_urls=(node.url,))
    async with running(settings, provider) as gateway:
        await asyncio.sleep(1.1)  # blocks of this chain carry whole seconds
        node.mode = None
        assert (await claim(gateway, payer.transfer(20_000))).status_code == 200
