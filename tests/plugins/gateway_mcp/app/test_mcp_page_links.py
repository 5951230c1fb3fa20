"""A call without a payment leads to the page on which a person buys the same request."""

import re
from urllib.parse import parse_qsl, urlsplit

import attrs
import pytest

from tests.conftest import running
from tests.plugins.gateway_mcp.app.agent import Agent

_LINK = re.compile(r"https?://\S+")


def link_of(answer) -> tuple[str, dict]:
    """The path of the link for people, and its query."""
    (link,) = _LINK.findall(answer["content"][1]["text"])
    url = urlsplit(link)
    assert url.netloc == "gateway.test"
    return url.path, dict(parse_qsl(url.query, strict_parsing=bool(url.query)))


async def test_the_link_has_the_request(agent):
    wanted = {
        "prompt": "a boat & 5 % of \u00e9\U0001f6a2?\nagain",
        "aspect_ratio": "16:9",
        "resolution": "2K",
    }
    answer = await agent.call("picture", **wanted)
    assert link_of(answer) == ("/play/picture", wanted)
    text = answer["content"][1]["text"]
    assert text.startswith("This call costs 0.02 USDC on base. Without a wallet, a person buys")
    assert "The request is filled in there." in text


async def test_a_file_is_added_on_the_page(modern):
    answer = await modern.call("paper", fileBase64="eA==", fileName="a.txt", prompt="the total")
    # The parser reads no prompt.
    assert link_of(answer) == ("/play/paper", {})
    assert "Add the file there." in answer["content"][1]["text"]


async def test_a_request_that_is_too_long_for_a_link_is_left_out(modern):
    answer = await modern.call("picture", prompt="\u00e9" * 5_000)
    assert link_of(answer) == ("/play/picture", {})
    assert "Add the request there." in answer["content"][1]["text"]
    assert len(answer["content"][1]["text"]) < 1_000


@pytest.mark.parametrize("payment", [{}, {"x402Version": 3}])
async def test_a_refused_payment_has_the_link_too(modern, payment):
    answer = await modern.call("picture", payment, prompt="a boat")
    assert link_of(answer) == ("/play/picture", {"prompt": "a boat"})


async def test_without_pages_there_is_no_link(settings, provider):
    off = attrs.evolve(settings, plugins_disabled=(*settings.plugins_disabled, "gateway_shop"))
    async with running(off, provider) as gateway:
        answer = await Agent(gateway).call("picture", prompt="a boat")
    text = answer["content"][1]["text"]
    assert text.startswith("This call costs 0.02 USDC on base. A client that holds an x402 wallet")
    assert not _LINK.search(text)
