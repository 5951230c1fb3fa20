"""A gateway that sends webhooks to this machine, and a receiver."""

import pytest

from gateway_webhooks import Deliveries, DeliveryTiming
from tests.conftest import running
from tests.plugins.gateway_webhooks.app.receiver import receiving

PAUSES = (0.0,) * 5


@pytest.fixture
def settings(settings):
    return settings.changed(base_url="http://127.0.0.1:8080", webhooks="local")


@pytest.fixture
async def receiver():
    async with receiving() as one:
        yield one


@pytest.fixture
async def gateway(settings, provider, chain, clock):
    async with running(settings, provider, now=clock) as started:
        started.chain = chain
        started.services.find(Deliveries).timing = DeliveryTiming(pauses_s=PAUSES, poll_s=0.05)
        await started.services.payments.cutoff_block()
        yield started


async def nothing_left(gateway) -> None:
    """Wait until every event was delivered or abandoned."""
    import asyncio

    async with asyncio.timeout(120):
        while await waits(gateway):  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)


async def waits(gateway) -> bool:
    """Whether an event waits to be taken or to be delivered."""
    if await gateway.services.store.events.waits("webhooks", now=4e9):
        return True
    return bool(await gateway.services.find(Deliveries).queue.due(1, now=4e9))
