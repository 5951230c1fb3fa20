"""Which of several nodes delivers webhooks."""

import contextlib

import attrs
import pytest

from gateway_webhooks import Deliveries, DeliveryTiming
from tests.conftest import buy, running
from tests.plugins.gateway_webhooks.app.receiver import receiving


@pytest.fixture
def nodes(settings, provider, migrated_url):
    settings.data_dir.mkdir(parents=True)

    @contextlib.asynccontextmanager
    async def opened(name, webhooks):
        local = settings.changed(base_url="http://127.0.0.1:8080", webhooks=webhooks)
        node = attrs.evolve(local, database_url=migrated_url, node=name)
        async with running(node, provider) as gateway:
            if webhooks != "off":
                gateway.services.find(Deliveries).timing = DeliveryTiming(poll_s=0.05)
            await gateway.services.payments.cutoff_block()
            yield gateway

    return opened


async def delivers(gateway) -> bool:
    return await gateway.services.find(Deliveries).is_mine()


async def test_another_node_delivers_if_the_leader_has_webhooks_off(nodes, payer):
    async with receiving() as receiver, nodes("a", "off") as leader, nodes("b", "local") as seller:
        assert leader.services.lifecycle.leads()
        callback = f"http://127.0.0.1:{receiver.port}/hook"
        sold = await (await buy(seller, payer.header(), callbackUrl=callback)).get_json()
        (delivered,) = await receiver.got(1)
        assert delivered.event["data"]["taskId"] == sold["taskId"]


async def test_one_node_delivers_at_a_time(nodes):
    async with nodes("b", "off") as leader, nodes("c", "local") as second:
        async with nodes("a", "local") as first:
            assert leader.services.lifecycle.leads()
            assert [await delivers(first), await delivers(second)] == [True, False]
        assert await delivers(second)
    async with nodes("b", "local") as leader, nodes("a", "local") as follower:
        assert [await delivers(leader), await delivers(follower)] == [True, False]
