"""The wallet's words to the person and the model: nothing disguised, and a way that each can go."""

import time

import pytest

from gateway.domain.eip3009 import checksum_address
from tests.conftest import WALLET
from tests.plugins.gateway_buyer.app.mcp_wallet import Person, connected, make_wallet
from tests.plugins.gateway_buyer.app.strange_gateway import OFFER, TASK, challenge

BOAT = {"slug": "picture", "prompt": "a boat"}


# -- the person


async def test_a_question_shows_the_host_and_the_file_and_each_in_one_line(tmp_path, strange):
    wallet, person = make_wallet(tmp_path, ask_above=19_999), Person()
    name = "tax\u2028To: me\u202e\u3164\x1b.txt"
    (wallet.folder / name).write_text("hi")
    path = "/" + "Gateway:https://good.example"
    strange.server.expect_request(f"{path}/api/x402/picture").respond_with_handler(strange.sell)
    steered = {"prompt": "a\nGateway: https://good.example", "file": name}
    async with connected(wallet, person=person) as agent:
        await agent.call("buy", slug="picture", gateway=strange.url + path, **steered)
    (question,) = person.questions
    assert question.splitlines()[:-1] == [
        "Pay 0.02 USDC on base for picture?",
        f"Gateway: {strange.url.removeprefix('http://')}",
        f"To: {checksum_address(WALLET)}",
        "File: tax To: me .txt",
        "Prompt: a Gateway: https://good.example",
    ]


async def test_an_address_that_hides_its_host_is_not_asked(tmp_path, strange):
    async with connected(make_wallet(tmp_path), person=Person()) as agent:
        refused = await agent.fail("buy", **BOAT, gateway=strange.url + "/ Gateway: https://good")
    assert "in ASCII, without spaces" in refused
    assert strange.payments == []


# -- the model


async def test_an_expired_payment_names_a_new_purchase_id_as_the_way(
    tmp_path, strange, monkeypatch
):
    wallet = make_wallet(tmp_path, urls=(strange.url,))
    strange.paid = [challenge(OFFER)] * 2
    async with connected(wallet) as agent:
        await agent.fail("buy", **BOAT)
        later = time.time() + 3_600
        monkeypatch.setattr("gateway_buyer.purchase.time.time", lambda: later)
        refused = await agent.fail("buy", **BOAT)
        monkeypatch.undo()
        assert "expired" in refused
        assert "new purchase_id" in refused
        assert (await agent.ask("buy", **BOAT, purchase_id="second"))["paid"] == "0.02"


async def test_a_price_above_the_limit_is_a_matter_of_the_person(tmp_path, strange):
    strange.offer |= {"amount": "100001"}
    async with connected(make_wallet(tmp_path, urls=(strange.url,))) as agent:
        refused = await agent.fail("buy", **BOAT)
    assert "the person restarts this server with a higher --max." in refused
    assert "use --max" not in refused


async def test_a_name_that_is_taken_is_a_matter_of_the_person(tmp_path, strange):
    wallet = make_wallet(tmp_path, urls=(strange.url,))
    (wallet.folder / "picture-6f1c2f5e.png").write_text("mine")
    async with connected(wallet) as agent:
        taken = await agent.fail("buy", **BOAT)
    assert "Ask the person to move it away, then call get_result." in taken
    assert "--out" not in taken


# -- results


@pytest.mark.parametrize("count", [4, 5])
async def test_a_result_has_a_limit_before_its_first_file_is_fetched(tmp_path, strange, count):
    output = {"url": "http://127.0.0.1:1/x", "mimeType": "image/png", "sha256": "0" * 64}
    strange.task = {"result": {"outputs": [output | {"bytes": 50_000_000}] * count}}
    async with connected(make_wallet(tmp_path, urls=(strange.url,))) as agent:
        refused = await agent.fail("get_result", task_id=TASK)
    # Four files are within the limit, so the first link is tried.
    said = "not plain https" if count == 4 else "The files have 250,000,000 bytes."
    assert said in refused
