"""A week of an operator who sells little: the machine sleeps, and every duty is done.

Time is compressed: the gateway's clock and the chain's are advanced together.
"""

import asyncio
import random

import attrs
import pytest
from eth_account import Account

from gateway import ContentPolicy, hookimpl
from gateway.domain import PaymentState
from gateway.payments.refunds import RefundTiming
from gateway.running.facts_of_parts import find_pending
from gateway_backups import records
from gateway_idle import IdleWatch
from gateway_operator.state import Operator
from tests.conftest import running
from tests.patience import until
from tests.plugins.gateway_idle.app.conftest import follow
from tests.waits import Waits, started_with

DAY_S = 86_400.0
HOUR_S = 3_600.0
PRICE = 20_000
# Every seventh sale fails, and the refund key has USDC for two refunds until it is filled up.
FAILS = 7
REFUNDS = 2


@attrs.define
class Pager:
    """The operator's phone."""

    raised: list = attrs.field(factory=list)

    @hookimpl
    async def gateway_notify(self, alarm):
        if alarm.event == "raised":
            self.raised.append(alarm.key.partition(":")[0])


@attrs.define
class Week:
    """One machine that a request wakes."""

    settings: object
    provider: object
    chain: object
    clock: object
    payer: object
    refund_key: str
    pager: Pager = attrs.field(factory=Pager)
    awake_s: float = 0.0
    starts: int = 0
    sold: int = 0

    def pass_time(self, seconds: float) -> None:
        self.clock.offset_s += seconds
        self.chain.advance(seconds)

    async def wake(self, *requests) -> None:
        """Start the machine, send the requests, and let time pass until it ends."""
        began = self.clock()
        async with running(
            self.settings, self.provider, now=self.clock, more=[self.pager]
        ) as gateway:
            await gateway.services.lifecycle.warmed.wait()
            follow(gateway, self.clock)
            for request in requests:
                await request(gateway)
            while not await self._ends(gateway):
                pass
            await self._check_copy(gateway)
            self.awake_s += self.clock() - began
        self.starts += 1

    async def _ends(self, gateway) -> bool:
        """Let half a minute pass, unless work is in progress; return whether it is to end."""
        pending = await find_pending(gateway.services)
        if set(pending) <= {"alarms", "refunds"}:
            # A refund that waits for money is pending for five minutes.
            await asyncio.sleep(0.05 if "refunds" in pending else 0.0)
            self.pass_time(30.0)
            await gateway.services.find(Operator).alarms.step()
            await gateway.services.find(Operator).alarms.sender.finish()
        else:
            await asyncio.sleep(0.01)
        await gateway.services.find(IdleWatch).check()
        return gateway.services.lifecycle.asleep.is_set()

    async def _check_copy(self, gateway) -> None:
        """A lost volume loses no sale while the machine sleeps."""
        store = gateway.services.store
        newest = await store.read(records.newest, "backup")
        assert newest.details == {"lastPayment": await store.read(records.last_payment)}

    async def buy(self, gateway) -> None:
        """Buy a picture; one of `FAILS` fails."""
        self.sold += 1
        if self.sold % FAILS == 0:
            self.provider.script = [ContentPolicy("No boats.")]
        until_s = int(self.clock()) + 300
        headers = {"X-PAYMENT": self.payer.header(PRICE, valid_before=until_s)}
        answer = await gateway.client.post(
            "/api/x402/picture", json={"prompt": "a boat"}, headers=headers
        )
        assert answer.status_code == 200, await answer.get_json()
        await gateway.wait((await answer.get_json())["taskId"])

    async def read(self, gateway) -> None:
        """Read the catalogue, as a crawler does."""
        await gateway.client.get("/.well-known/agent-manifest.json")

    async def live(self, days: int, sales_a_day: int, strays_a_day: int) -> None:
        """Sell at random times, with stray requests in between."""
        times = random.Random(51)
        events = [
            (times.random() * DAY_S + day * DAY_S, kind)
            for day in range(days)
            for kind in [self.buy] * sales_a_day + [self.read] * strays_a_day
        ]
        began = self.clock()
        for at, request in sorted(events, key=lambda event: event[0]):
            self.pass_time(max(began + at - self.clock(), 1.0))
            await self.wake(request)

    async def pay_what_is_owed(self) -> None:
        """Fill the refund key up, and wake the machine."""
        self.chain.fund(self.refund_key, eth_wei=0, usdc_units=10_000_000)

        async def is_paid(gateway) -> bool:
            return not await gateway.services.store.refunds.cases(
                PaymentState.REFUND_DUE, PaymentState.REFUNDING
            )

        await self.wake(lambda gateway: until(lambda: is_paid(gateway)))

    async def check_end(self) -> None:
        """Every sale ended, and was refunded if it failed; old outputs are gone."""
        kept_s = self.settings.retention_days * DAY_S

        async def check(gateway) -> None:
            store, now = gateway.services.store, self.clock()
            await until(lambda: _is_swept(store, now))
            counts = await store.counts()
            failed = self.sold // FAILS
            assert counts["tasks"] == _some(completed=self.sold - failed, failed=failed)
            assert counts["payments"] == _some(settled=self.sold - failed, refunded=failed)
            for task in await store.recent_tasks(1_000, None):
                is_old = task.status == "completed" and now - task.completed_at > kept_s
                assert task.outputs_gone == is_old

        await self.wake(check)


def _some(**counts: int) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


async def _is_swept(store, now) -> bool:
    return not await store.expired_outputs(now=now, limit=1)


@pytest.fixture
def week(settings, provider, chain, clock, payer, tmp_path, monkeypatch):
    # Blocks of hours pass within one step.
    monkeypatch.setattr("gateway_operator.alarms.assembly.SEARCH_WAIT_S", 0.0)
    chain.set_pace(60.0)
    account = Account.create()
    chain.fund(account.address, eth_wei=10**18, usdc_units=REFUNDS * PRICE)
    settings = settings.changed(
        exit_when_idle="10m",
        retention_days=0.5,
        refund_key=account.key.hex(),
        refunds="automatic",
        backup_url=f"file://{tmp_path}/copies",
    )
    with started_with(Waits(refunds=RefundTiming(sweep_s=0.02))):
        yield Week(settings, provider, chain, clock, payer, account.address)


async def test_a_sale_a_night_costs_minutes(week):
    await week.wake(week.buy)
    week.pass_time(DAY_S)
    await week.wake(week.read)
    week.pass_time(DAY_S)
    await week.check_end()
    assert week.starts == 3
    assert week.awake_s < HOUR_S


@pytest.mark.full
async def test_a_week_of_ten_sales_a_day_costs_a_tenth_of_its_hours(week):
    await week.live(days=7, sales_a_day=10, strays_a_day=5)
    # The alarm was sent before the machine slept, and the debt is paid after the next start.
    assert "refund_key" in week.pager.raised
    await week.pay_what_is_owed()
    await week.check_end()
    assert week.sold == 70
    # Shown by `pytest -s`.
    print(f"awake for {week.awake_s / HOUR_S:.1f} of 168 hours, {week.starts} starts")  # noqa: T201
    assert week.awake_s < 7 * DAY_S / 8
