"""POST /api/x402/{slug}: the order of checks (docs/payments.md), and every row of spec §7.1."""

import attrs
import pytest
from eth_account import Account

from tests.conftest import WALLET, buy, nothing_charged, running

URL = "/api/x402/picture"


# -- the order of checks: each request breaks two rules, and gets the error of the earlier one


@pytest.fixture
async def strict(settings, provider, chain):
    async with running(attrs.evolve(settings, limit_x402="1/60s"), provider) as gateway:
        await gateway.client.post(URL)
        yield gateway


@pytest.mark.parametrize("url", [URL, "/api/x402/nothing"])
@pytest.mark.parametrize("body", [b"", b"{", b"x" * 100_000])
async def test_1_the_rate_limit_comes_before_slug_and_body(strict, url, body):
    answer = await strict.client.post(url, data=body)
    assert answer.status_code == 429
    assert set(await answer.get_json()) == {"error"}


@pytest.mark.parametrize("body", [b"", b"{", b"5"])
async def test_2_the_slug_comes_before_body_and_payment(gateway, payer, body):
    for headers in ({}, {"X-PAYMENT": payer.header()}, {"X-PAYMENT": "garbage"}):
        answer = await gateway.client.post("/api/x402/nothing", data=body, headers=headers)
        assert answer.status_code == 404
        assert (await answer.get_json())["code"] == "NOT_FOUND"


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
async def test_3_without_header_and_body_the_price_is_shown(gateway, kind):
    headers = {"Content-Type": kind} if kind else {}
    assert (await gateway.client.post(URL, headers=headers)).status_code == 402


@pytest.mark.parametrize("body", [{}, {"prompt": ""}, {"prompt": "a", "resolution": "9K"}])
async def test_4_nobody_pays_for_a_doomed_request(gateway, payer, chain, body):
    for headers in ({}, {"X-PAYMENT": payer.header()}, {"X-PAYMENT": "garbage"}):
        async with nothing_charged(gateway, chain):
            answer = await gateway.client.post(URL, json=body, headers=headers)
        assert answer.status_code == 400
        assert (await answer.get_json())["code"] == "VALIDATION_ERROR"


async def test_4_an_empty_body_with_a_payment_is_a_bad_body(gateway, payer, chain):
    async with nothing_charged(gateway, chain):
        answer = await gateway.client.post(URL, headers={"X-PAYMENT": payer.header()})
    assert answer.status_code == 400


async def test_4_the_provider_may_refuse_before_payment(gateway, payer, provider, chain):
    provider.refuse = "This model draws no boats."
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, payer.header())
    assert answer.status_code == 400
    assert await answer.get_json() == {"error": provider.refuse, "code": "VALIDATION_ERROR"}


async def test_5_the_price_is_shown_also_where_we_cannot_serve(gateway):
    gateway.services.readiness.is_draining = True
    assert (await buy(gateway, None)).status_code == 402


@pytest.mark.parametrize("header", [None, "garbage"], ids=["good", "malformed"])
async def test_7_where_we_cannot_serve_no_payment_is_looked_at(gateway, payer, chain, header):
    gateway.services.readiness.is_draining = True
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, header or payer.header())
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "20"
    assert (await answer.get_json())["code"] == "EXECUTION_ERROR"


async def test_7_a_full_disk_sells_nothing(settings, provider, payer, chain):
    async with running(attrs.evolve(settings, min_free_disk_mb=10**9), provider) as gateway:
        answer = await buy(gateway, payer.header())
    assert (await answer.get_json())["code"] == "EXECUTION_ERROR"
    assert chain.usdc_balance(WALLET) == 0


async def test_7_a_settlement_key_without_gas_sells_nothing(settings, provider, payer, chain):
    poor = attrs.evolve(settings, settlement_key=Account.create().key.hex())
    async with running(poor, provider) as gateway:
        assert (await buy(gateway, None)).status_code == 402
        async with nothing_charged(gateway, chain):
            answer = await buy(gateway, payer.header())
    assert answer.status_code == 500
    assert (await answer.get_json())["code"] == "EXECUTION_ERROR"


@pytest.mark.parametrize("bought_before", [False, True])
async def test_7_a_silent_chain_is_a_500_and_nothing_is_charged(
    gateway, payer, chain, bought_before
):
    if bought_before:
        await gateway.wait((await (await buy(gateway, payer.header())).get_json())["taskId"])
    async with nothing_charged(gateway, chain):
        chain.stop()
        answer = await buy(gateway, payer.header())
    assert answer.status_code == 500
    assert (await answer.get_json())["code"] in ("EXECUTION_ERROR", "INTERNAL_ERROR")
