"""Hostile requests to `/mcp`, as in docs/security.md."""

import asyncio
import json

import attrs
import pytest

from gateway_mcp.sdk_server import SdkServer
from tests.cases import each
from tests.conftest import nothing_charged, running
from tests.gateway.web.asgi_calls import SILENT, Asked, Client, ask
from tests.plugins.gateway_mcp.app.agent import LEGACY, MODERN, Agent

CALL = {"name": "picture", "arguments": {"prompt": "a boat"}}


async def error_of(answer) -> tuple[int, int]:
    """Status and JSON-RPC code of an error."""
    body = await answer.get_json()
    assert body["jsonrpc"] == "2.0"
    assert answer.headers["X-Request-Id"]
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    return answer.status_code, body["error"]["code"]


# -- malformed messages


@each(
    "data, code",
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"2.0","method":"\xff"}', -32700),
        (b"[" * 20_000 + b"]" * 20_000, -32700),
        (b'{"a":' * 2_000 + b"1" + b"}" * 2_000, -32700),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[' + b"[]," * 9_999 + b"[]]}}",
            -32700,
        ),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', -32600),
        (b"5", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
    ],
)
async def test_what_is_no_message_is_refused_in_json_rpcs_words(agent, data, code):
    answer = await agent.send(None, data=data)
    assert await error_of(answer) == (400, code)


async def test_integers_without_end_and_odd_numbers_are_no_fault_of_ours(agent):
    for number in (b"1" * 5_000, b"1e999", b"NaN", b"-0"):
        data = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"picture",'
        answer = await agent.send(None, data=data + b'"arguments":{"prompt":' + number + b"}}}")
        assert answer.status_code in (200, 400)
        body = await answer.get_json()
        assert body.get("error", {}).get("code") != -32603


async def test_a_notification_is_taken_and_not_answered(agent):
    answer = await agent.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert answer.status_code == 202
    assert await answer.get_data() == b""


@pytest.mark.parametrize(
    "changed",
    [
        {"Mcp-Method": "tools/list"},
        {"Mcp-Name": "paper"},
        {"MCP-Protocol-Version": "2027-01-01"},
    ],
    ids=lambda changed: next(iter(changed)),
)
async def test_headers_that_differ_from_the_message_are_refused(modern, gateway, chain, changed):
    async with nothing_charged(gateway, chain):
        answer = await modern.send(modern.message("tools/call", CALL), headers=changed)
    status, code = await error_of(answer)
    assert (status, code) in ((400, -32020), (400, -32022))


async def test_only_posts_are_taken(gateway):
    for method in ("GET", "DELETE", "PUT"):
        answer = await gateway.client.open("/mcp", method=method)
        assert answer.status_code == 405
        assert "POST" in answer.headers["Allow"]
    assert (await gateway.client.options("/mcp")).status_code == 200


async def test_another_content_type_is_refused(modern):
    data = json.dumps(modern.message("tools/list"))
    answer = await modern.send(None, headers={"Content-Type": "text/plain"}, data=data)
    assert await error_of(answer) == (400, -32600)


# -- other origins


@each("origin", ["https://evil.example", "null", "http://gateway.test.evil"])
async def test_a_page_of_another_origin_is_refused(agent, origin):
    answer = await agent.send(agent.message("tools/list"), headers={"Origin": origin})
    assert await error_of(answer) == (403, -32600)


async def test_the_gateways_own_pages_may_ask(agent):
    answer = await agent.send(
        agent.message("tools/list"), headers={"Origin": "http://gateway.test"}
    )
    assert answer.status_code == 200


@pytest.mark.parametrize("allowed", ["*", "https://inspector.example"])
async def test_the_operator_may_let_other_pages_ask(settings, provider, clock, allowed):
    open_to = settings.changed(mcp_origins=(allowed,))
    async with running(open_to, provider, now=clock) as gateway:
        agent = Agent(gateway)
        origin = {"Origin": "https://inspector.example"}
        answer = await agent.send(agent.message("tools/list"), headers=origin)
        assert answer.status_code == 200
        preflight = await gateway.client.options("/mcp", headers=origin)
        assert "Mcp-Method" in preflight.headers["Access-Control-Allow-Headers"]


# -- sizes and times


async def test_a_body_that_is_too_large_is_refused_unread(agent, gateway):
    answer = await agent.send(None, data=b"{" + b" " * 11_000_001)
    assert await error_of(answer) == (413, -32600)


async def test_a_large_message_holds_nothing_but_a_file(modern, gateway, chain):
    numbers = b"1," * 500_000
    message = json.dumps(modern.message("tools/call", CALL)).encode()
    padded = message.replace(b'"params": {', b'"params": {"more": [' + numbers + b"1],", 1)
    async with nothing_charged(gateway, chain):
        answer = await modern.send(modern.message("tools/call", CALL), data=padded)
    assert await error_of(answer) == (413, -32600)


async def test_a_file_of_the_largest_size_can_be_bought(agent, gateway, payer, provider):
    encoded = "A" * 10_000_000
    arguments = {"fileBase64": encoded, "fileName": "large.txt"}
    answer = await agent.call("paper", payer.payload(10_000, version=2), **arguments)
    assert answer["structuredContent"]["status"] == "completed"
    assert len(provider.requests[-1].attachment.data) == 7_500_000


@pytest.mark.parametrize("size", [8, 400_000], ids=["a small message", "a large one"])
async def test_an_address_for_events_is_refused_and_never_ignored(
    modern, gateway, chain, payer, size
):
    arguments = {
        "fileBase64": "A" * size,
        "fileName": "a.txt",
        "callbackUrl": "https://buyer.example/hook",
    }
    async with nothing_charged(gateway, chain):
        answer = await modern.call("paper", payer.payload(10_000, version=2), **arguments)
    assert answer["isError"] is True
    assert "callbackUrl works over HTTP only" in answer["content"][0]["text"]


async def test_bodies_share_the_memory_of_all_bodies(settings, provider, clock):
    small = attrs.evolve(settings, body_memory_mb=24)
    async with running(small, provider, now=clock) as gateway:
        head = [
            (b"host", b"gateway.test"),
            (b"content-type", b"application/json"),
            (b"content-length", b"10000000"),
        ]
        asked = Asked(method="POST", path=b"/mcp", headers=head, pieces=[b"{"], end=SILENT)
        slow = Client(asked)
        task = asyncio.create_task(gateway.app(asked.scope(), slow.receive, slow.send))
        await slow.starved.wait()
        # One address may use at most half.
        refused = await ask(gateway.app, asked)
        assert refused.status == 503
        assert refused.headers["retry-after"] == ["5"]
        assert json.loads(refused.body)["error"]["code"] == -32000
        slow.hang_up()
        await task


async def test_a_slow_body_is_cut_off(gateway):
    gateway.app.config["BODY_TIMEOUT"] = 0.05
    head = [(b"host", b"gateway.test"), (b"content-type", b"application/json")]
    asked = Asked(method="POST", path=b"/mcp", headers=head, pieces=[b"{"], end=SILENT)
    answer = await ask(gateway.app, asked)
    assert answer.status == 408
    assert json.loads(answer.body)["error"]["code"] == -32600


# -- floods


async def test_a_flood_of_messages_is_refused_with_the_time_to_wait(settings, provider, clock):
    clock.frozen_at = 2_000_000_000.0
    limited = settings.changed(limit_mcp="20/60s")
    async with running(limited, provider, now=clock) as gateway:
        agent = Agent(gateway)
        statuses = []
        for _ in range(1_000):
            answer = await agent.send(None, data=b"{")
            statuses.append(answer.status_code)
        assert statuses == [400] * 20 + [429] * 980
        assert answer.headers["Retry-After"] == "60"
        assert await error_of(answer) == (429, -32000)
        clock.offset_s = 60
        assert (await agent.send(agent.message("tools/list"))).status_code == 200


async def test_calls_count_towards_the_limits_of_http(settings, provider, clock, payer):
    clock.frozen_at = 2_000_000_000.0
    limited = attrs.evolve(settings, limit_x402="3/60s", limit_price="2/60s", limit_task="1/60s")
    async with running(limited, provider, now=clock) as gateway:
        agent = Agent(gateway)
        asked = [await agent.call("picture", prompt="a boat") for _ in range(3)]
        assert "accepts" in asked[1]["structuredContent"]
        assert "Rate limit exceeded" in asked[2]["content"][0]["text"]
        paid = [await agent.call("picture", {}, prompt="a boat") for _ in range(4)]
        assert "Rate limit exceeded" not in paid[2]["content"][0]["text"]
        assert "Rate limit exceeded" in paid[3]["content"][0]["text"]
        shown = [await agent.call("get_task", taskId="x") for _ in range(2)]
        assert "Rate limit exceeded" in shown[1]["content"][0]["text"]
        answer = await agent.ask("tasks/get", {"taskId": "x"})
        assert answer["error"]["code"] == -32000


async def test_a_large_message_counts_as_a_purchase_before_it_is_read(settings, provider, clock):
    clock.frozen_at = 2_000_000_000.0
    async with running(attrs.evolve(settings, limit_x402="1/60s"), provider, now=clock) as gateway:
        agent = Agent(gateway)
        for expected in (413, 429):
            message = agent.message(
                "tools/call", {"name": "paper", "arguments": {"x": "x" * 300_000}}
            )
            answer = await agent.send(message)
            assert answer.status_code == expected


async def test_a_client_that_hangs_up_while_it_waits_leaves_nothing_behind(gateway, payer, blocked):
    agent = Agent(gateway)
    payment = payer.payload(version=2)
    params = {"name": "picture", "arguments": {"prompt": "a boat"}}
    message = json.dumps(agent.message("tools/call", params, {"x402/payment": payment}))
    head = [
        (b"host", b"gateway.test"),
        (b"content-type", b"application/json"),
        (b"mcp-protocol-version", MODERN.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"picture"),
    ]
    asked = Asked(method="POST", path=b"/mcp", headers=head, pieces=[message.encode()])
    client = Client(asked)
    task = asyncio.create_task(gateway.app(asked.scope(), client.receive, client.send))
    while not gateway.services.long_polls._by_address:  # noqa: ASYNC110 - nothing tells it
        await asyncio.sleep(0.01)
    client.hang_up()
    await task
    assert not gateway.services.long_polls._by_address
    blocked.set()
    # The paid task is made, and the payment finds it again.
    again = await agent.call("picture", payment, prompt="a boat")
    assert again["structuredContent"]["status"] == "completed"


# -- without the SDK


@pytest.mark.parametrize("why", ["switched off", "not installed", "an older SDK"])
async def test_without_it_the_path_is_unknown(settings, provider, clock, monkeypatch, why):
    if why == "switched off":
        settings = settings.changed(mcp=False)
    else:
        import importlib.util

        found, missing = importlib.util.find_spec, {"not installed": "mcp"}.get(why, "mcp_types")
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if name == missing else found(name)
        )
    async with running(settings, provider, now=clock) as gateway:
        assert not gateway.services.keeps(SdkServer)
        for method in ("GET", "POST"):
            answer = await gateway.client.open("/mcp", method=method)
            assert answer.status_code == 404
            assert (await answer.get_json())["code"] == "NOT_FOUND"


async def test_with_it_the_gateway_says_so(gateway):
    assert gateway.services.keeps(SdkServer)


async def test_the_older_protocol_needs_no_header(gateway):
    agent = Agent(gateway, LEGACY)
    answer = await agent.send(agent.message("ping"), headers={"MCP-Protocol-Version": "2025-03-26"})
    assert (await answer.get_json())["result"] == {}
