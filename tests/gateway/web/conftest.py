"""Fixtures: a provider that waits, and a gateway that gives up on a payment soon."""

import asyncio

import pytest

from gateway.payments.settlement import SettlementTiming
from gateway.tasks.notifications import Subscription


@pytest.fixture
def held(provider):
    """Keep the provider busy until the event is set."""
    return keep_busy(provider)


def keep_busy(provider) -> asyncio.Event:
    """Keep the provider busy with the next task until the event is set."""
    release = asyncio.Event()

    async def step(request, job):
        await job.progress(0.5)
        await release.wait()

    provider.script = [step]
    return release


@pytest.fixture
def waits(monkeypatch):
    """An event that is set once a request waits; then only a notification wakes the request."""
    wait, is_waiting = Subscription.wait, asyncio.Event()

    async def until_posted(subscription, timeout_s):
        is_waiting.set()
        await wait(subscription, 3600)

    monkeypatch.setattr(Subscription, "wait", until_posted)
    return is_waiting


@pytest.fixture
def quick(gateway, chain):
    """Give up soon on an unknown outcome, and poll the chain often."""
    gateway.services.payments.outcome_s = 0.2
    gateway.services.settlements.timing = SettlementTiming(poll_s=0.05, full_check_s=0.2)
    chain.set_automine(False)
