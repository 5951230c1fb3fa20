"""The fast path responds like Quart: the same requests are sent both ways."""

import asyncio
import contextlib
import json
from collections import Counter

import attrs
import pytest
import structlog

from gateway import hookimpl
from gateway.settings import EndpointOverride
from tests.conftest import ScriptedPlugin, ScriptedProvider, buy, running
from tests.gateway.operation.test_obstacles import call_token
from tests.gateway.web.asgi_calls import (
    HUNG_UP,
    SILENT,
    WHOLE,
    Answered,
    Asked,
    Client,
    ask,
    ask_while_checking,
)
from tests.gateway.web.odd_requests import HOST, odd_requests
from tests.patience import PATIENCE_S, skip_time, until

FAST, QUART = "203.0.113.", "198.51.100."
PRICE = Asked(
    method="POST",
    path=b"/api/x402/picture",
    headers=[HOST, (b"content-type", b"application/json"), (b"content-length", b"19")],
    pieces=[b'{"prompt":"a boat"}'],
)


class PlainProvider:
    """A provider that checks nothing before payment."""

    name = "plain"
    submit = ScriptedProvider.submit


class MorePlugin:
    """Sells more than the scripted plugin: unchecked, switched off, off sale."""

    __name__ = "more-plugin"

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        sold = []
        ScriptedPlugin(ScriptedProvider()).register_endpoints(lambda *each: sold.append(each), None)
        for slug in ("plain", "off", "paused"):
            register(attrs.evolve(sold[0][0], slug=slug), PlainProvider())


def changed(settings, **changes):
    off = {"off": EndpointOverride(enabled=False)}
    return attrs.evolve(settings, endpoints=off, **changes)


@contextlib.asynccontextmanager
async def opened(settings, provider, clock, payer):
    """Run a gateway with one completed task; yields it with the task's id."""
    async with running(settings, provider, [MorePlugin()], now=clock) as gateway:
        gateway.app.config["BODY_TIMEOUT"] = 0.05
        gateway.services.catalog["paused"].upstream.circuit.trip("402: top up")
        paid = await (await buy(gateway, payer.header())).get_json()
        await gateway.wait(paid["taskId"])
        await gateway.silence_background()
        clock.frozen_at = clock()
        yield gateway, paid["taskId"]


class Both:
    """Sends each request both ways, and counts the responses of the fast path."""

    def __init__(self, gateway) -> None:
        self.fast = gateway.app.asgi_app
        self.quart = self.fast.behind
        self.fast.behind = self._hand_on
        self._was_handed_on = False
        self.answered = Counter()
        self.handed_on = 0

    async def _hand_on(self, scope, receive, send) -> None:
        self._was_handed_on = True
        await self.quart(scope, receive, send)

    async def compare(self, asked: Asked, address: str = "1") -> Answered | None:
        """Assert that both ways give one response and the same log lines; return the response."""
        self._was_handed_on = False
        with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
            answer = await ask(self.fast, attrs.evolve(asked, client=FAST + address))
            fast = comparable(answer, lines)
            lines.clear()
            other = await ask(self.quart, attrs.evolve(asked, client=QUART + address))
        is_chance = asked.end == HUNG_UP and asked.method == "POST"
        if is_chance and (answer is None) != (other is None):
            # The response needs no more of the body, so it may be sent before the gateway notices
            # the disconnect: a client that only stops sending gets it both ways.
            silent = await self.compare(attrs.evolve(asked, end=SILENT), address)
            # The second request may exceed the limit.
            assert silent is not None
            assert silent.status in ((answer or other).status, 429), asked
            return silent
        assert fast == comparable(other, lines), asked
        if self._was_handed_on:
            self.handed_on += 1
        else:
            rule = asked.path.split(b"/")[2].decode()
            self.answered[rule, None if answer is None else answer.status] += 1
        return answer


def comparable(answer: Answered | None, lines: list[dict]) -> tuple:
    """Return the parts that must be equal both ways: all but durations and random ids."""
    logged = [
        {name: str(value) for name, value in line.items() if name not in ("ms", "request")}
        for line in lines
        # Once in a process, and once in a while.
        if line["event"] not in ("proxy.no_address", "part.failed")
    ]
    if answer is None:
        return None, logged
    headers = {name: sorted(values) for name, values in answer.headers.items()}
    (name,) = headers.pop("x-request-id")
    assert all(line.get("request", name) == name for line in lines)
    # Quart writes the methods in varying order.
    headers["allow"] = [sorted(each.split(", ")) for each in headers.get("allow", ())]
    return answer.status, headers, answer.body, len(name) == 32 or name, logged


@pytest.mark.full
async def test_a_thousand_odd_requests_get_the_same_answers_both_ways(
    settings, provider, clock, payer
):
    async with opened(changed(settings), provider, clock, payer) as (gateway, task_id):
        both = Both(gateway)
        for asked in odd_requests("a thousand", 1_000, task_id):
            await both.compare(asked)
    # The comparison proves nothing unless the fast path is used.
    assert sum(both.answered.values()) > 300
    assert both.handed_on > 300
    kinds = [("health", 200), ("task", 200), ("task", 404), ("task", 400)]
    kinds += [("x402", status) for status in (400, 402, 408, None)]
    assert set(kinds) <= set(both.answered)


@pytest.mark.parametrize(
    "accept",
    [b"text/*", b"*/*", b"application/json;q=0.1,*/*", b"text/*,application/json;q=0.5", b""],
)
async def test_a_pattern_that_a_stream_only_fits_gets_json_both_ways(
    settings, provider, clock, payer, accept
):
    async with opened(changed(settings), provider, clock, payer) as (gateway, task_id):
        both = Both(gateway)
        poll = Asked(path=b"/api/task/" + task_id.encode(), headers=[HOST, (b"accept", accept)])
        answer = await both.compare(poll)
    assert answer.headers["content-type"] == ["application/json"]
    assert both.handed_on == 0


# -- the same with other settings, and while the gateway cannot sell


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"limit_x402": "10/60s", "limit_task": "5/1s"}, 429),
        ({"limit_x402": "10/60s", "limit_price": "3/60s", "limit_task": "5/1s"}, 429),
        ({"base_url": "https://gateway.test", "client_ip_header": "X-Forwarded-For"}, 402),
        ({"body_memory_mb": 8, "limit_price": "1000/60s"}, 402),
    ],
    ids=["limits", "price limit", "https behind a proxy", "little memory"],
)
async def test_settings_hold_both_ways(settings, provider, clock, payer, changes, status):
    async with opened(changed(settings, **changes), provider, clock, payer) as (gateway, task_id):
        both = Both(gateway)
        for number, asked in enumerate(odd_requests(changes, 150, task_id)):
            # Few addresses, so that each sends many requests.
            await both.compare(asked, str(number % 3))
        assert both.answered["x402", status] > 5


async def test_strict_transport_security_is_told_on_the_fast_path(settings, provider, clock, payer):
    https = changed(settings, base_url="https://gateway.test")
    async with opened(https, provider, clock, payer) as (gateway, _):
        answer = await Both(gateway).compare(PRICE)
    assert answer.headers["strict-transport-security"] == ["max-age=31536000"]
    assert answer.headers["access-control-allow-origin"] == ["*"]


def wallet_is_wrong(gateway, chain, provider):
    gateway.services.wallet.problem = "GATEWAY_WALLET is a contract."


def token_is_paused(gateway, chain, provider):
    call_token(chain, "pause")


def stops(gateway, chain, provider):
    gateway.services.readiness.is_draining = True


def provider_refuses(gateway, chain, provider):
    provider.refuse = "No a boat on a lake here, and no a boat either."


def provider_fails(gateway, chain, provider):
    async def validate(request, endpoint):
        raise RuntimeError("broken: a boat on a lake")

    provider.validate = validate


def payment_plugin_fails(gateway, chain, provider):
    def challenge(quote, reason, version):
        raise RuntimeError("broken")

    gateway.services.payments.methods.first.challenge = challenge


SCENES = {
    wallet_is_wrong: 500,
    token_is_paused: 402,
    stops: 402,
    provider_refuses: 400,
    provider_fails: 500,
    payment_plugin_fails: 500,
}


@pytest.mark.parametrize(
    ("change", "status"), SCENES.items(), ids=lambda one: getattr(one, "__name__", "")
)
async def test_what_stops_sales_is_told_both_ways(
    settings, provider, clock, payer, chain, change, status
):
    async with opened(changed(settings), provider, clock, payer) as (gateway, task_id):
        both = Both(gateway)
        before = await both.compare(PRICE)
        change(gateway, chain, provider)
        await gateway.services.settlements.obstacles.refresh()
        after = await both.compare(PRICE)
        for asked in odd_requests(change.__name__, 80, task_id):
            await both.compare(asked)
    assert (before.status, after.status) == (402, status)
    assert both.answered["x402", status] > 3
    if change is token_is_paused:
        assert json.loads(after.body)["error"].startswith("USDC is paused")


async def test_the_price_told_is_never_an_older_one(settings, provider, clock, payer, chain):
    """A cached challenge is not used during a refusal, nor after the endpoint has changed."""
    async with opened(changed(settings), provider, clock, payer) as (gateway, _):
        both, refresh = Both(gateway), gateway.services.settlements.obstacles.refresh
        plain = await both.compare(PRICE)
        call_token(chain, "pause")
        await refresh()
        assert (await both.compare(PRICE)).body != plain.body
        call_token(chain, "unpause")
        await refresh()
        assert (await both.compare(PRICE)).body == plain.body
        registered = gateway.services.catalog._registered
        sold = registered["picture"]
        dearer = attrs.evolve(sold.endpoint, title="A dearer picture")
        registered["picture"] = attrs.evolve(sold, endpoint=dearer)
        quote = json.loads((await both.compare(PRICE)).body)
        assert quote["accepts"][0]["description"] == "A dearer picture"


# -- slow bodies and clients


async def test_a_body_that_does_not_end_gets_408(settings, provider, clock, payer):
    async with opened(changed(settings), provider, clock, payer) as (gateway, _):
        both = Both(gateway)
        answer = await both.compare(attrs.evolve(PRICE, pieces=[b"{"], end=SILENT))
        assert (answer.status, both.handed_on) == (408, 0)


async def test_the_oldest_slow_body_of_the_greedy_makes_way_both_ways(
    settings, provider, clock, payer
):
    little = changed(settings, body_memory_mb=1)
    size = 60_000
    head = [HOST, (b"content-type", b"application/json"), (b"content-length", b"%d" % size)]
    slow = attrs.evolve(PRICE, headers=head, pieces=[b"{"], end=SILENT)
    whole = attrs.evolve(slow, pieces=[b" " * size], end=WHOLE)
    async with opened(little, provider, clock, payer) as (gateway, _):
        gateway.app.config["BODY_TIMEOUT"] = 30
        fast = gateway.app.asgi_app
        for app in (fast, fast.behind):
            held = []
            for address in ("203.0.113.1", "203.0.113.2"):
                for _ in range(8):
                    scope = attrs.evolve(slow, client=address).scope()
                    client = Client(slow)
                    asking = asyncio.create_task(app(scope, client.receive, client.send))
                    held.append((client, asking))
                    await client.starved.wait()
            assert (await ask(app, attrs.evolve(whole, client="203.0.113.3"))).status == 400
            await held[0][1]
            refused = held[0][0].answer()
            assert (refused.status, refused.headers["retry-after"]) == (503, ["5"])
            for client, asking in held[1:]:
                client.hang_up()
                await asking
                assert client.sent == []
            # All memory was released.
            assert (await ask(app, attrs.evolve(whole, client="203.0.113.1"))).status == 400


async def test_a_whole_body_counts_while_its_check_waits_both_ways(
    settings, provider, clock, payer
):
    body = b'{"prompt":"a boat"}'.ljust(60_000)
    head = [HOST, (b"content-type", b"application/json"), (b"content-length", b"60000")]
    whole = attrs.evolve(PRICE, headers=head, pieces=[body], client="203.0.113.1")
    little = changed(settings, body_memory_mb=1)
    async with opened(little, provider, clock, payer) as (gateway, _):
        fast = gateway.app.asgi_app
        for app in (fast, fast.behind):
            assert (await ask_while_checking(app, provider, whole)).status == 503


async def test_a_hang_up_ends_the_check_of_a_request_both_ways(settings, provider, clock, payer):
    began, ended = asyncio.Event(), []

    async def validate(request, endpoint):
        began.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(request.prompt)

    async with opened(changed(settings), provider, clock, payer) as (gateway, _):
        provider.validate = validate
        fast = gateway.app.asgi_app
        for app in (fast, fast.behind):
            began.clear()
            client = Client(PRICE)
            asking = asyncio.create_task(app(PRICE.scope(), client.receive, client.send))
            await began.wait()
            client.hang_up()
            await asking
            assert client.sent == []
    assert ended == ["a boat", "a boat"]


async def test_a_hang_up_ends_a_long_poll_both_ways(settings, provider, clock, payer):
    release = asyncio.Event()

    async def step(request, job):
        await release.wait()

    one_waits = changed(settings, max_long_polls=1)
    async with opened(one_waits, provider, clock, payer) as (gateway, _):
        provider.script = [step]
        paid = await (await buy(gateway, payer.header())).get_json()
        poll = Asked(path=b"/api/task/" + paid["taskId"].encode(), query=b"wait=30")
        fast, polls = gateway.app.asgi_app, gateway.services.long_polls
        for app in (fast, fast.behind):
            client = Client(poll)
            asking = asyncio.create_task(app(poll.scope(), client.receive, client.send))
            while polls._by_address.total() != 1:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.01)
            # No second one waits.
            assert (await ask(app, poll)).status == 200
            client.hang_up()
            await asking
            assert (client.sent, polls._by_address.total()) == ([], 0)
        release.set()


async def test_an_answer_that_the_client_does_not_read_is_given_up_both_ways(
    settings, provider, clock, payer
):
    async with opened(changed(settings), provider, clock, payer) as (gateway, _):
        gateway.app.config["RESPONSE_TIMEOUT"] = 60
        fast = gateway.app.asgi_app
        for app in (fast, fast.behind):
            client = Client(PRICE)
            client.reads = False
            asking = asyncio.create_task(app(PRICE.scope(), client.receive, client.send))
            await until(lambda client=client: client.sent)
            skip_time(60)
            async with asyncio.timeout(PATIENCE_S):
                await asking
            assert [one["type"] for one in client.sent] == ["http.response.start"]
