"""Nodes that share a database sleep, once nothing is pending for any of them."""

import contextlib

import attrs
import pytest

from gateway_idle import IdleWatch
from tests.conftest import running
from tests.gateway.web.conftest import keep_busy
from tests.gateway.web.orders import order

WITHOUT_ALARMS = ("gateway_operator",)


@pytest.fixture
def nodes(settings, provider, migrated_url, clock, monkeypatch):
    # Only the test checks.
    monkeypatch.setattr("gateway_idle._EVERY_S", 86_400.0)
    settings.data_dir.mkdir(parents=True)
    local = settings.changed(exit_when_idle="10m", plugins_disabled=WITHOUT_ALARMS)

    @contextlib.asynccontextmanager
    async def opened(name):
        node = attrs.evolve(local, database_url=migrated_url, node=name)
        async with running(node, provider, now=clock) as gateway:
            await gateway.services.lifecycle.warmed.wait()
            yield gateway

    return opened


async def _sleeps(gateway) -> bool:
    await gateway.services.find(IdleWatch).check()
    return gateway.services.lifecycle.asleep.is_set()


async def test_both_stay_for_a_task_of_one_and_then_both_sleep(nodes, provider, payer, clock):
    async with nodes("a") as first, nodes("b") as second:
        release = keep_busy(provider)
        task = await order(first, payer)
        for node in (first, second):
            node.services.requests.used_at -= 700
        assert [await _sleeps(first), await _sleeps(second)] == [False, False]
        release.set()
        await first.wait(task)
        assert [await _sleeps(first), await _sleeps(second)] == [True, True]
    # A request wakes one of them, which leads at once.
    async with nodes("b") as woken:
        assert woken.services.lifecycle.leads()
        assert await woken.wait(task)
