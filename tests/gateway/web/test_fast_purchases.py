"""Purchases on the fast path: it sells like Quart's routes, each request both ways."""

import asyncio
import json

import attrs
import pytest
import structlog

from tests.conftest import nothing_charged
from tests.gateway.web.asgi_calls import SILENT, Asked, Client, ask, ask_while_checking
from tests.gateway.web.odd_requests import HOST, odd_requests
from tests.gateway.web.test_fast_path import Both, changed, opened

PROMPT = "a boat"
TRANSFERRED = "0x" + "7" * 64


def asked_for(path: bytes, body: dict, *headers: tuple[bytes, bytes]) -> Asked:
    data = json.dumps(body).encode()
    about = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    return Asked(method="POST", path=path, headers=[HOST, *about, *headers], pieces=[data])


def x402(header: str, *more: tuple[bytes, bytes], name: bytes = b"x-payment") -> Asked:
    body = {"prompt": PROMPT}
    return asked_for(b"/api/x402/picture", body, (name, header.encode()), *more)


def direct(tx_hash: str, *more: tuple[bytes, bytes], slug: str = "picture") -> Asked:
    body = {"slug": slug, "txHash": tx_hash, "prompt": PROMPT}
    return asked_for(b"/api/proxy-generate", body, *more)


KEY = (b"idempotency-key", b"one")
# Requests that wait at the provider's check, by payment flow.
CHECKED = {"x402": x402("e30="), "direct": direct(TRANSFERRED)}


async def paid_requests(gateway, app, payer) -> list[Asked]:
    """Buy in three ways; return repeats of these purchases, and others that are refused."""
    bought = [
        x402(payer.header()),
        x402(payer.header(version=2), KEY, name=b"payment-signature"),
        direct(payer.transfer(20_000), KEY),
    ]
    for one in bought:
        answer = await ask(app, one)
        assert answer.status == 200, answer.body
        await gateway.wait(json.loads(answer.body)["taskId"])
    spent = json.loads(bought[2].pieces[0])["txHash"]
    return [
        *bought,
        *bought,
        direct(spent),
        direct(spent, slug="none"),
        direct(spent, slug="plain"),
        direct("0x12"),
        direct(payer.transfer(1)),
        x402(payer.header(units=19_999)),
        x402(payer.header(valid_before=1)),
        x402(payer.header(to=payer.account.address)),
        x402(payer.header(units=1), (b"payment-signature", payer.header(version=2).encode())),
        x402("e30="),
    ]


async def test_odd_purchases_get_the_same_answers_both_ways(
    settings, provider, clock, payer, chain
):
    async with opened(changed(settings), provider, clock, payer) as (gateway, task_id):
        both = Both(gateway)
        plain = await paid_requests(gateway, both.quart, payer)
        await gateway.silence_background()
        for one in plain:
            await both.compare(one)
            assert both.handed_on == 0, one
        async with nothing_charged(gateway, chain):
            for asked in odd_requests("purchases", 600, task_id, plain):
                await both.compare(asked)
    assert sum(both.answered.values()) > 200
    assert both.handed_on > 100
    kinds = [("x402", status) for status in (200, 400, 402, 408, None)]
    kinds += [("proxy-generate", status) for status in (200, 400, 404, 408, None)]
    assert set(kinds) <= set(both.answered)


@pytest.mark.parametrize("way", ["x402", "direct"])
async def test_a_purchase_is_the_same_one_both_ways(settings, provider, clock, payer, way):
    """A new payment sells one task either way; the other way returns that task again."""
    made = {"x402": lambda: x402(payer.header()), "direct": lambda: direct(payer.transfer(20_000))}
    async with opened(changed(settings), provider, clock, payer) as (gateway, _):
        both, seen = Both(gateway), []
        for first, then in ((both.fast, both.quart), (both.quart, both.fast)):
            new = made[way]()
            new = attrs.evolve(
                new, headers=[*new.headers, (b"idempotency-key", b"k%d" % len(seen))]
            )
            with structlog.testing.capture_logs() as lines:
                answer = await ask(first, new)
            assert answer.status == 200
            again = await ask(then, new)
            assert (again.status, again.body) == (200, answer.body)
            task_id = json.loads(answer.body)["taskId"]
            assert (await gateway.wait(task_id))["done"]
            logged = [line for line in lines if line["event"].startswith(("payment", "request"))]
            names = [(line["event"], *sorted(line)) for line in logged]
            seen.append((names, sorted(answer.headers), sorted(again.headers)))
    assert both.handed_on == 0
    assert seen[0] == seen[1]


@pytest.mark.parametrize("way", CHECKED)
async def test_a_purchase_whose_client_hangs_up_at_the_check_takes_nothing_both_ways(
    settings, provider, clock, payer, chain, way
):
    began, ended = asyncio.Event(), []

    async def validate(request, endpoint):
        began.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(request.prompt)

    asked = CHECKED[way]
    async with opened(changed(settings), provider, clock, payer) as (gateway, _):
        provider.validate = validate
        fast = gateway.app.asgi_app
        async with nothing_charged(gateway, chain):
            for app in (fast, fast.behind):
                began.clear()
                client = Client(asked)
                asking = asyncio.create_task(app(asked.scope(), client.receive, client.send))
                await began.wait()
                client.hang_up()
                await asking
                assert client.sent == []
    assert ended == [PROMPT, PROMPT]


@pytest.mark.parametrize("way", CHECKED)
async def test_the_body_of_a_purchase_counts_while_it_waits_both_ways(
    settings, provider, clock, payer, way
):
    (data,) = CHECKED[way].pieces
    headers = [each for each in CHECKED[way].headers if each[0] != b"content-length"]
    headers.append((b"content-length", b"60000"))
    large = attrs.evolve(CHECKED[way], headers=headers, pieces=[data.ljust(60_000)])
    little = changed(settings, body_memory_mb=1)
    async with opened(little, provider, clock, payer) as (gateway, _):
        fast = gateway.app.asgi_app
        for app in (fast, fast.behind):
            assert (await ask_while_checking(app, provider, large)).status == 503


@pytest.mark.parametrize("way", CHECKED)
async def test_a_purchase_whose_body_does_not_end_gets_408(settings, provider, clock, payer, way):
    async with opened(changed(settings), provider, clock, payer) as (gateway, _):
        both = Both(gateway)
        answer = await both.compare(attrs.evolve(CHECKED[way], pieces=[b"{"], end=SILENT))
        assert (answer.status, both.handed_on) == (408, 0)


@pytest.mark.parametrize(("way", "limit"), [("x402", "limit_x402"), ("direct", "limit_direct")])
async def test_limits_of_purchases_hold_both_ways(settings, provider, clock, payer, way, limit):
    few = changed(settings, **{limit: "2/60s", "limit_price": "1000/60s"})
    async with opened(few, provider, clock, payer) as (gateway, _):
        both = Both(gateway)
        answers = [await both.compare(CHECKED[way]) for _ in range(4)]
    assert both.handed_on == 0
    assert [answer.status for answer in answers][2:] == [429, 429]
    assert 429 not in [answer.status for answer in answers][:2]
