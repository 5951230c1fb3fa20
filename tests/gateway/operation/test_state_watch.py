"""The log reports once when gas, refund key or disk run low, and once when they recover."""

import attrs
import pytest
import structlog
from eth_account import Account

from gateway.domain import Attachment, GenerationRequest
from gateway.errors import ExecutionError
from gateway_operator.alarms.state_watch import StateWatch
from gateway_operator.desk.system import read_clock
from gateway_testing.facts import authorization, key_of, new_task
from tests.conftest import Payer, buy, operators_rows, running

LARGE = GenerationRequest(attachment=Attachment(name="a.pdf", data=b"x" * 300_000))


async def events_of(watch, checks=2) -> list[dict]:
    """Return the events of some checks."""
    with structlog.testing.capture_logs() as lines:
        for _ in range(checks):
            await watch.check()
    return lines


@pytest.fixture(autouse=True)
def fresh_loggers(monkeypatch):
    """`capture_logs` does not reach loggers that were used before."""
    for module in ("gateway_operator.alarms.state_watch", "gateway.store.sqlite.writer"):
        monkeypatch.setattr(f"{module}._log", structlog.get_logger())


async def test_low_gas_is_told_once_with_address_and_count(settings, provider, chain, clock):
    poor = Account.create()
    chain.fund(poor.address, eth_wei=10**13, usdc_units=0)
    poorer = attrs.evolve(settings, settlement_key=poor.key.hex())
    async with running(poorer, provider, now=clock) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        watch = StateWatch(gateway.services)
        (line,) = await events_of(watch)
        assert (line["event"], line["log_level"]) == ("gas.low", "warning")
        assert line["settlements"] < 200
        assert line["keys"] == {poor.address.lower(): "0.000010 ETH"}
        chain.fund(poor.address, eth_wei=10**18, usdc_units=0)
        # A key that can pay is checked again after a while.
        clock.offset_s += 61
        await gateway.services.settlements.obstacles.check()
        assert [line["event"] for line in await events_of(watch)] == ["gas.recovered"]


async def test_a_refund_key_without_eth_is_told(settings, provider, chain):
    key = Account.create()
    async with running(attrs.evolve(settings, refund_key=key.key.hex()), provider) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        watch = StateWatch(gateway.services)
        (line,) = await events_of(watch)
        assert (line["event"], line["urgency"]) == ("key.low", "urgent")
        assert (line["key"], line["address"]) == ("refund", key.address.lower())
        chain.fund(key.address, eth_wei=10**18, usdc_units=0)
        assert [line["event"] for line in await events_of(watch)] == ["key.recovered"]


async def test_a_disk_near_its_floor_is_told(settings, provider):
    async with running(attrs.evolve(settings, min_free_disk_mb=10**9), provider) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        (line,) = await events_of(StateWatch(gateway.services))
        assert (line["event"], line["urgency"]) == ("disk.low", "urgent")
        assert line["floor_mb"] == 10**9


async def test_a_full_disk_is_told_and_ready_says_so_until_it_writes_again(
    settings, provider, chain
):
    async with running(attrs.evolve(settings, min_free_disk_mb=0), provider) as gateway:
        store = gateway.services.store
        gateway.services.shared_checks.ttl_s = 0.0
        (pages,) = (await on_writer(store, "PRAGMA page_count"))[0]
        await on_writer(store, f"PRAGMA max_page_count = {pages}")
        signed = authorization()
        with structlog.testing.capture_logs() as lines:
            for _ in range(2):
                with pytest.raises(ExecutionError):
                    await store.reserve(new_task(request=LARGE), signed, key_of(signed), 0)
            status, rows = await operators_rows(gateway)
        assert [line["event"] for line in lines].count("disk.full") == 1
        assert status == 503
        assert rows["database"]["problem"] == "The disk is full: free some space."
        assert rows["disk"]["problem"].startswith("The disk is full: free some space.")
        refusal = await buy(gateway, Payer(chain).header())
        assert (refusal.status_code, (await refusal.get_json())["code"]) == (500, "EXECUTION_ERROR")
        assert (await gateway.client.get("/api/health")).status_code == 200
        await on_writer(store, "PRAGMA max_page_count = 1000000")
        status, rows = await operators_rows(gateway)
        assert (status, rows["database"]["ok"], rows["disk"]["ok"]) == (200, True, True)


async def test_the_clock_is_compared_with_the_newest_block(settings, provider, clock):
    async with running(settings, provider, now=clock) as gateway:
        for offset_s in (0, 600, -600):
            clock.offset_s = offset_s
            ahead_s = await read_clock(gateway.services.chain, clock)
            assert abs(ahead_s - offset_s) < 60


async def on_writer(store, sql) -> list:
    return await store._writer.run_between_batches(lambda db: db.execute(sql).fetchall())
