"""GET and HEAD on an endpoint return its price; browsers are redirected to its page."""

import attrs
import pytest

from tests.authorizations import decoded
from tests.cases import each
from tests.conftest import buy, nothing_charged, running

URL = "/api/x402/picture"
FIREFOX = {
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
}


@each("query", ["", "?x402Version=1", "?x402Version=2"])
@each("path", [URL, "/api/x402/paper"])
async def test_get_and_head_answer_as_a_post_without_a_body(gateway, path, query):
    post = await gateway.client.post(path + query)
    get = await gateway.client.get(path + query)
    head = await gateway.client.head(path + query)
    assert post.status_code == get.status_code == head.status_code == 402
    assert await get.get_data() == await post.get_data()
    for name in ("PAYMENT-REQUIRED", "Content-Type", "Content-Length", "Cache-Control"):
        assert get.headers[name] == head.headers[name] == post.headers[name]
    assert decoded(get.headers["PAYMENT-REQUIRED"])["accepts"][0]["amount"]
    assert get.headers["Vary"] == "Accept, User-Agent"


async def test_a_browser_is_sent_to_the_page_of_the_endpoint(gateway):
    for ask in (gateway.client.get, gateway.client.head):
        answer = await ask(URL, headers=FIREFOX)
        assert answer.status_code == 303
        assert answer.headers["Location"] == "/play/picture"
        assert answer.headers["Vary"] == "Accept, User-Agent"
        assert await answer.get_data() == b""


@pytest.mark.parametrize("name", FIREFOX)
async def test_half_the_signs_of_a_browser_are_no_browser(gateway, name):
    answer = await gateway.client.get(URL, headers={name: FIREFOX[name]})
    assert answer.status_code == 402


@pytest.mark.parametrize("name", ["X-PAYMENT", "PAYMENT-SIGNATURE"])
async def test_a_get_buys_nothing(gateway, chain, payer, name):
    header = payer.header()
    async with nothing_charged(gateway, chain):
        for more in ({}, FIREFOX):
            answer = await gateway.client.get(URL, headers={name: header, **more})
            assert answer.status_code == 405
            assert answer.headers["Allow"] == "POST"
            assert (await answer.get_json())["code"] == "METHOD_NOT_ALLOWED"
    assert (await buy(gateway, header)).status_code == 200


@pytest.mark.parametrize("headers", [{}, FIREFOX])
async def test_an_unknown_endpoint_is_a_404(gateway, headers):
    for path in ("/api/x402/none", "/api/x402/%0d%0aSet-Cookie:a=b"):
        answer = await gateway.client.get(path, headers=headers)
        assert answer.status_code == 404
        assert (await answer.get_json())["code"] == "NOT_FOUND"


async def test_what_stops_sales_is_told_by_get_as_by_post(gateway):
    gateway.services.wallet.problem = "GATEWAY_WALLET is a contract."
    get, post = await gateway.client.get(URL), await gateway.client.post(URL)
    assert get.status_code == post.status_code == 500
    assert await get.get_data() == await post.get_data()


@pytest.mark.parametrize("own_window", ["", "3/60s"])
async def test_get_counts_as_an_unpaid_post(settings, provider, clock, own_window):
    limited = attrs.evolve(settings, limit_x402="3/60s", limit_price=own_window)
    clock.frozen_at = 1_795_000_000.0
    async with running(limited, provider, now=clock) as gateway:
        client = gateway.client
        asked = [await client.get(URL), await client.head(URL), await client.post(URL)]
        assert [answer.status_code for answer in asked] == [402] * 3
        for answer in (
            await client.get(URL),
            await client.get(URL, headers=FIREFOX),
            await client.head(URL),
            await client.post(URL),
        ):
            assert (answer.status_code, answer.headers["Retry-After"]) == (429, "60")
