"""Every instruction for a transfer names `payerSignature`: a hash is public."""

import json
import re
from html import unescape

import pytest

from gateway_mcp.payment import ask_for_payment
from tests.conftest import buy, running
from tests.gateway.operation.test_obstacles import wallet_without_gas

NAME = "payerSignature"
FIRST = "the first client to send it gets the task"


@pytest.fixture
async def transfers_only(settings, provider, chain, gas_key):
    """Return a gateway that cannot settle x402 and advises a transfer."""
    poor, _ = wallet_without_gas(settings, gas_key, chain)
    async with running(poor, provider) as gateway:
        await gateway.services.settlements.obstacles.refresh()
        yield gateway


async def text_at(gateway, path: str) -> str:
    return await (await gateway.client.get(path)).get_data(as_text=True)


async def curl_of(gateway) -> str:
    page = await text_at(gateway, "/play/picture")
    shown = re.search(r'data-language="curl".*?<code>(.*?)</code>', page, re.DOTALL)[1]
    return unescape(re.sub(r"<[^>]+>", "", shown))


async def test_a_402_that_advises_a_transfer_names_it(transfers_only):
    answer = await buy(transfers_only, None)
    error = (await answer.get_json())["error"]
    assert "Send 0.02 USDC" in error
    assert NAME in error
    assert FIRST in error


async def test_documents_and_code_name_it(gateway):
    llms = await text_at(gateway, "/llms.txt")
    assert f'"txHash":"0x…","{NAME}":"0x…"' in llms
    assert FIRST in llms
    manifest = json.loads(await text_at(gateway, "/.well-known/agent-manifest.json"))
    direct = manifest["authentication"][1]
    assert NAME in direct["description"]
    assert FIRST in direct["description"]
    code = await curl_of(gateway)
    assert f'"{NAME}": "0x…"' in code
    assert "gets the task" in code


async def test_llms_txt_says_what_works_now(gateway, transfers_only):
    assert "## Now" not in await text_at(gateway, "/llms.txt")
    llms = await text_at(transfers_only, "/llms.txt")
    assert "## Now" in llms
    assert "buy by way 2" in llms


async def test_a_tool_that_cannot_be_paid_by_x402_names_the_other_way(transfers_only):
    from gateway.web.routes.generate import make_challenge

    services = transfers_only.services
    quote = services.quote(services.catalog["picture"].endpoint)
    answer = ask_for_payment(make_challenge(services, quote, None), "0.02 USDC", "Open the page.")
    assert NAME in answer["content"][1]["text"]
    assert "signs one of the entries" not in answer["content"][1]["text"]
    assert "Open the page." not in answer["content"][1]["text"]


async def test_where_nothing_is_sold_the_code_makes_no_transfer(gateway):
    obstacles = gateway.services.settlements.obstacles
    assert "proxy-generate" in await curl_of(gateway)
    obstacles._note("stopped", "The chain has stopped.", "No blocks.")
    code = await curl_of(gateway)
    assert "make no transfer" in code
    assert "proxy-generate" not in code
