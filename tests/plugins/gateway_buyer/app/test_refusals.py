"""A purchase that cannot be made is refused at once, in words that name the way out."""

import base64
import json
import socket

import attrs
import pytest
from werkzeug import Response

from gateway_buyer.errors import NotBought, Unfinished
from tests.plugins.gateway_buyer.app.strange_gateway import OFFER, answer

LIMIT = 100_000


@pytest.fixture
def closed_url():
    """A URL on this machine at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def refuse(httpserver, slug, response):
    httpserver.clear()
    httpserver.expect_request(f"/api/x402/{slug}").respond_with_response(response)


def challenge(**fields):
    """A 402 with these fields in its header."""
    encoded = base64.b64encode(json.dumps({"x402Version": 2, **fields}).encode()).decode()
    return answer(402, {"error": "in the body"}, PAYMENT_REQUIRED=encoded)


# -- no connection


async def test_nothing_listens(buyer, order, closed_url, messages):
    with pytest.raises(NotBought) as raised:
        await buyer.ask_price(attrs.evolve(order, url=closed_url), LIMIT)
    assert str(raised.value) == f"Nothing listens at {closed_url}. Nothing was signed."
    assert messages == []


async def test_a_host_that_no_resolver_knows(buyer, order, messages, monkeypatch):
    def resolve(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    sentence = r"The host gateway\.test is not found \(Name or service not known\)\. Nothing was"
    with pytest.raises(NotBought, match=sentence):
        await buyer.ask_price(attrs.evolve(order, url="https://gateway.test"), LIMIT)
    assert messages == []


async def test_after_the_signature_the_payment_is_sent_again_while_nothing_listens(
    buyer, order, strange, closed_url, messages
):
    terms = await buyer.ask_price(order, LIMIT)
    gone = attrs.evolve(order, url=closed_url)
    with pytest.raises(Unfinished, match=r"Nothing listens at .* Whether it was paid is not known"):
        await buyer.pay(gone, buyer.sign(gone, terms, b"\x11" * 32))
    assert len(messages) == len(buyer.timing.pauses_s)


def test_the_command_says_that_nothing_listens(run, closed_url):
    refused = run("picture", "a boat", "--key", "demo", url=closed_url)
    expected = f"gateway: Nothing listens at {closed_url}. Nothing was signed.\n"
    assert (refused.exit_code, refused.output) == (1, expected)


# -- the gateway's own words


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("It cannot read the chain.", "It cannot read the chain."),
        ("Off sale. \x1b[2J", "Off sale. [2J"),
    ],
)
async def test_a_gateway_that_takes_nothing_says_why(buyer, order, httpserver, reason, said):
    refuse(httpserver, "picture", challenge(accepts=[], error=reason))
    with pytest.raises(NotBought) as raised:
        await buyer.ask_price(order, LIMIT)
    assert str(raised.value) == f"The gateway takes no payment now: {said}"


@pytest.mark.parametrize("error", [None, "", 5, ["x"]])
async def test_the_body_has_the_reason_if_the_header_has_none(buyer, order, httpserver, error):
    refuse(httpserver, "picture", challenge(accepts=[], error=error))
    with pytest.raises(NotBought, match="takes no payment now: in the body"):
        await buyer.ask_price(order, LIMIT)


async def test_an_unknown_way_to_pay_is_still_named(buyer, order, httpserver):
    foreign = OFFER | {"network": "eip155:1"}
    refuse(httpserver, "picture", challenge(accepts=[foreign], error="Payment required"))
    with pytest.raises(NotBought, match="The gateway takes: exact on eip155:1"):
        await buyer.ask_price(order, LIMIT)


async def test_a_402_without_a_header_is_told_in_its_words(buyer, order, httpserver):
    refuse(httpserver, "picture", answer(402, {"error": "Version 1 only."}))
    with pytest.raises(NotBought, match=r"not x402 version 2\. The gateway says: Version 1 only\."):
        await buyer.ask_price(order, LIMIT)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("fileBase64 is missing.", "picture needs --file."),
        ("fileName is missing.", "picture needs --file."),
        ("prompt is missing.", "picture needs a prompt."),
        ("resolution is missing.", "picture needs --resolution."),
        ("seed is missing.", "request (status 400: VALIDATION_ERROR: seed is missing)."),
        ("The prompt is empty.", "request (status 400: VALIDATION_ERROR: The prompt is empty)."),
    ],
)
async def test_a_request_that_the_gateway_refuses(buyer, order, httpserver, error, sentence):
    refuse(httpserver, "picture", answer(400, {"error": error, "code": "VALIDATION_ERROR"}))
    with pytest.raises(NotBought) as raised:
        await buyer.ask_price(order, LIMIT)
    assert sentence in str(raised.value)


async def test_a_slug_that_is_not_sold(buyer, order, httpserver):
    refuse(httpserver, "picture", answer(404, {"error": "No such endpoint.", "code": "NOT_FOUND"}))
    with pytest.raises(NotBought, match=r"does not sell picture \(status 404: NOT_FOUND: No such"):
        await buyer.ask_price(order, LIMIT)


async def test_a_page_of_another_server_is_no_price(buyer, order, httpserver):
    refuse(httpserver, "picture", Response("<html>", 200, mimetype="text/html"))
    with pytest.raises(NotBought, match=r"names no price \(status 200\)"):
        await buyer.ask_price(order, LIMIT)
