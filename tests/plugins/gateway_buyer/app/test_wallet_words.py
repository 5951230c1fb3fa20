"""What the wallet tells the person and the model: nothing disguised, and a way that each can go."""

from gateway.domain.eip3009 import checksum_address
from tests.conftest import WALLET
from tests.plugins.gateway_buyer.app.mcp_wallet import Person, connected, make_wallet

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
