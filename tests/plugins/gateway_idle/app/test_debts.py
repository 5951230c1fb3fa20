"""Open payments, refunds, webhooks, alarms and copies keep an idle gateway awake."""

import asyncio

import pytest
from eth_account import Account

from gateway import ContentPolicy
from gateway.payments.refunds import RefundTiming
from gateway_backups import records
from gateway_operator.state import Operator
from gateway_webhooks import Deliveries
from tests.conftest import buy
from tests.gateway.web.orders import order
from tests.patience import until
from tests.plugins.gateway_idle.app.conftest import IDLE_S
from tests.plugins.gateway_operator.app.alarm_gateway import check_alarms
from tests.plugins.gateway_webhooks.app.receiver import receiving
from tests.waits import FAST, Waits, started_with


async def test_an_open_payment_keeps_it_awake(settings, idling, chain, payer):
    async with idling(settings) as idler:
        services = idler.gateway.services
        services.payments.outcome_s, services.settlements.timing = 0.2, FAST
        chain.set_automine(False)
        task = (await (await buy(idler.gateway, payer.header())).get_json())["taskId"]
        assert not await idler.pass_time()
        assert idler.stays_for() == [["payments", "tasks"]]
        chain.set_automine(True)
        assert (await idler.gateway.wait(task))["status"] == "completed"
        assert await idler.check()


@pytest.fixture
def refunding(settings, chain):
    """Settings with automatic refunds from a key that has gas and no USDC."""
    account = Account.create()
    chain.fund(account.address, eth_wei=10**18, usdc_units=0)
    with started_with(Waits(refunds=RefundTiming(sweep_s=0.05))):
        yield settings.changed(refund_key=account.key.hex(), refunds="automatic"), account.address


async def _fail(idler, provider, payer) -> dict:
    provider.script = [ContentPolicy("No boats.")]
    return await idler.gateway.wait(await order(idler.gateway, payer))


async def test_a_refund_keeps_it_awake_until_it_is_paid(refunding, idling, chain, provider, payer):
    settings, key = refunding
    async with idling(settings) as idler:
        chain.fund(key, eth_wei=10**18, usdc_units=1_000_000)
        chain.set_automine(False)
        await _fail_unmined(idler, chain, provider, payer)
        assert not await idler.pass_time()
        assert idler.stays_for() == [["refunds"]]
        chain.set_automine(True)
        await until(lambda: _is_refunded(idler))
        assert await idler.check()


async def _fail_unmined(idler, chain, provider, payer) -> None:
    """Sell a failing task; mine its settlement, and no refund."""
    provider.script = [ContentPolicy("No boats.")]
    buying = asyncio.create_task(buy(idler.gateway, payer.header()))
    await until(lambda: _waits(chain))
    chain.node.mine()
    task = (await (await buying).get_json())["taskId"]
    assert (await idler.gateway.wait(task))["status"] == "failed"


async def _waits(chain) -> bool:
    return bool(chain.node.pool.waiting)


async def _is_refunded(idler) -> bool:
    counts = await idler.gateway.services.store.counts()
    return counts["payments"].get("refunded") == 1


async def test_a_refund_that_waits_for_money_does_not(refunding, idling, provider, payer):
    settings, _ = refunding
    async with idling(settings) as idler:
        task = await _fail(idler, provider, payer)
        await until(lambda: _has_problem(idler, task["taskId"]))
        # A problem of the first five minutes may pass.
        requests = idler.gateway.services.requests
        requests.used_at -= IDLE_S + 1
        assert not await idler.check()
        assert idler.stays_for() == [["refunds"]]
        assert await idler.pass_time(301)


async def _has_problem(idler, task_id) -> bool:
    case = await idler.gateway.services.store.refunds.case(task_id)
    return case is not None and case.problem is not None


async def test_a_refund_that_waits_for_a_decision_does_not(refunding, idling, provider, payer):
    settings, _ = refunding
    async with idling(settings.changed(refunds="manual")) as idler:
        await _fail(idler, provider, payer)
        assert await idler.pass_time()


async def test_a_waiting_webhook_keeps_it_awake(settings, idling, payer):
    settings = settings.changed(base_url="http://127.0.0.1:8080", webhooks="local")
    async with receiving() as receiver, idling(settings) as idler:
        receiver.answers = [b"HTTP/1.1 500 \r\ncontent-length: 0\r\n\r\n"]
        url = f"http://127.0.0.1:{receiver.port}/"
        task = await order(idler.gateway, payer, callbackUrl=url)
        await idler.gateway.wait(task)
        await until(lambda: _has_failed_once(receiver))
        assert not await idler.pass_time()
        assert ["webhooks"] in idler.stays_for()
        # The second attempt is due by now.
        idler.gateway.services.find(Deliveries).wake()
        await until(lambda: _is_idle(idler))


async def _has_failed_once(receiver) -> bool:
    return len(receiver.delivered) == 1


async def _is_idle(idler) -> bool:
    return await idler.check()


async def test_a_sale_is_copied_before_the_end(settings, idling, tmp_path, payer):
    settings = settings.changed(backup_url=f"file://{tmp_path}/copies")
    async with idling(settings) as idler:
        # The first copy, and the first drill.
        await until(lambda: _is_copied(idler, 1))
        await idler.gateway.wait(await order(idler.gateway, payer))
        assert not await idler.pass_time()
        assert ["backup"] in idler.stays_for()
        await until(lambda: _is_idle(idler))
        assert await _is_copied(idler, 2)


async def test_a_copy_that_fails_is_left_to_the_next_start(settings, idling, tmp_path, payer):
    settings = settings.changed(backup_url=f"file://{tmp_path}/copies")
    async with idling(settings) as idler:
        await until(lambda: _is_copied(idler, 1))
        await idler.gateway.wait(await order(idler.gateway, payer))
        (tmp_path / "copies").rename(tmp_path / "before")
        (tmp_path / "copies").write_text("no folder")
        assert not await idler.pass_time()
        await until(lambda: _is_idle(idler))
        assert "backup.failed" in [line["event"] for line in idler.lines]


async def _is_copied(idler, times: int) -> bool:
    made = await idler.gateway.services.store.sum(records.records, 10, "backup")
    return len(made) >= times and all(one.error is None for one in made)


async def test_alarms_are_checked_and_sent_first(settings, idling, httpserver):
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    settings = settings.changed(
        alarm_webhook=httpserver.url_for("/alarms"), alarm_webhook_secret=secret
    )
    httpserver.expect_request("/alarms").respond_with_data(status=500)
    async with idling(settings, without=()) as idler:
        await idler.gateway.silence_background()
        # No block is mined, so the clock is off; its alarm begins after two minutes.
        assert not await idler.pass_time()
        await check_alarms(idler.gateway)
        assert not await idler.check()
        await check_alarms(idler.gateway, idler.clock, 180)
        assert not await idler.check()
        httpserver.clear()
        httpserver.expect_request("/alarms").respond_with_data(status=204)
        await check_alarms(idler.gateway, idler.clock, 180)
        # A new gateway has an hour for its first copy, which does not keep it awake.
        assert await idler.check()
        assert idler.stays_for() == [["alarms"]]


async def test_the_monitor_of_the_heartbeat_expects_none_while_it_sleeps(
    settings, idling, httpserver
):
    settings = settings.changed(
        heartbeat_url=httpserver.url_for("/beat"),
        heartbeat_pause_url=httpserver.url_for("/pause"),
        heartbeat_pause_key="the-key",
    )
    httpserver.expect_request("/beat").respond_with_data()
    httpserver.expect_request(
        "/pause", method="POST", headers={"X-Api-Key": "the-key"}
    ).respond_with_data()
    async with idling(settings, without=()) as idler:
        services = idler.gateway.services
        await check_alarms(idler.gateway)
        services.lifecycle.sleep()
    assert [asked.path for asked, _ in httpserver.log] == ["/beat", "/pause"]
    assert "heartbeat.paused" in [line["event"] for line in idler.lines]


async def test_a_stop_pauses_no_heartbeat(settings, idling, httpserver):
    settings = settings.changed(
        heartbeat_url=httpserver.url_for("/beat"), heartbeat_pause_url=httpserver.url_for("/pause")
    )
    httpserver.expect_request("/beat").respond_with_data()
    async with idling(settings, without=()) as idler:
        await check_alarms(idler.gateway)
        assert idler.gateway.services.find(Operator).alarms.heartbeat is not None
    assert "/pause" not in [asked.path for asked, _ in httpserver.log]
