"""Readiness: the public and the operator's view, and the cost of public requests."""

import asyncio
from collections.abc import Awaitable

import attrs

from gateway.running.readiness import TTL_S
from tests.conftest import running

ASKERS = 200


async def _ready(gateway, path="/api/ready") -> dict:
    return await (await gateway.client.get(path)).get_json()


async def _log_in(gateway) -> None:
    answer = await gateway.client.post("/admin/login", json={"password": "correct horse"})
    assert answer.status_code == 200


async def test_a_stampede_of_questions_costs_one_round_of_calls(gateway, clock, rpc_calls):
    clock.frozen_at = clock()
    await _ready(gateway)
    clock.offset_s += 60
    rpc_calls.clear()
    await _ready(gateway)
    one_round = len(rpc_calls)
    assert one_round >= 1
    clock.offset_s += 60
    rpc_calls.clear()
    answers = await asyncio.gather(*(_ready(gateway) for _ in range(ASKERS)))
    assert len(rpc_calls) < one_round + ASKERS // 10  # what looks in the background asks as well
    assert all(answer["ready"] for answer in answers)
    clock.offset_s += TTL_S - 1
    await _ready(gateway)
    assert len(rpc_calls) < one_round + ASKERS // 10


async def test_what_stops_is_seen_again_after_some_seconds(gateway, clock, chain):
    clock.frozen_at = clock()
    assert (await _ready(gateway))["ready"]
    chain.stop()
    clock.offset_s += TTL_S
    (row,) = [row for row in (await _ready(gateway))["checks"] if row["name"] == "rpc"]
    assert row == {
        "name": "rpc",
        "ok": False,
        "stops": "paid routes",
        "problem": "No RPC endpoint gives a usable answer.",
    }


async def test_a_gateway_that_stops_says_so_at_once(gateway):
    assert (await _ready(gateway))["ready"]
    gateway.services.readiness.is_draining = True
    answer = await gateway.client.get("/api/ready")
    assert answer.status_code == 503
    assert not (await answer.get_json())["ready"]


async def _text(call: Awaitable) -> str:
    return await (await call).get_data(as_text=True)


async def test_a_vendors_words_and_balances_are_for_the_operator_alone(settings, provider, chain):
    poor = attrs.evolve(settings, settlement_key="0x" + "5e" * 32, min_free_disk_mb=10**9)
    async with running(poor, provider) as gateway:
        circuit = gateway.services.catalog["picture"].upstream.circuit
        circuit.trip("Your credit balance of $3.14 is too low.")
        body = await _ready(gateway)
        public = await _text(gateway.client.get("/api/ready"))
        assert {row["name"] for row in body["checks"] if not row["ok"]} == {
            "settlement",
            "disk",
            "provider scripted",
        }
        assert "3.14" not in public
        assert "MB" not in public
        assert "0x" not in public
        await _log_in(gateway)
        answer = await gateway.client.get("/admin/ready")
        assert answer.status_code == 503
        problems = {row["name"]: row["problem"] for row in (await answer.get_json())["checks"]}
        assert "$3.14" in problems["provider scripted"]
        assert "MB are free" in problems["disk"]
        page = await _text(gateway.client.get("/admin"))
        assert "$3.14" in page
    assert "MB are free" in page


async def test_the_operators_rows_want_the_operators_session(gateway):
    answer = await gateway.client.get("/admin/ready")
    assert answer.status_code == 401
    assert set(await answer.get_json()) == {"error", "code"}
    await _log_in(gateway)
    answer = await gateway.client.get("/admin/ready")
    assert (answer.status_code, (await answer.get_json())["ready"]) == (200, True)
    assert answer.headers["Cache-Control"] == "no-store"
