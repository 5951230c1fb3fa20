"""A gateway whose PostgreSQL is reached by a lossy proxy."""

import pytest
from eth_account import Account

from gateway.payments.refunds import RefundTiming
from gateway.payments.settlement import SettlementTiming
from gateway_nodes.postgres import pool
from tests.gateway.postgres.lossy_proxy import lossy_proxy
from tests.plugins.gateway_webhooks.app.receiver import receiving
from tests.proof.lost_answers.scene import POOL_WAITS_S, staged
from tests.waits import Waits, started_with

_SETTLEMENT = SettlementTiming(poll_s=0.05, full_check_s=0.5, late_poll_s=0.2, sweep_s=0.5)


@pytest.fixture(autouse=True)
def _chosen_database():
    """Let these tests choose the database, whatever the run asks for."""


@pytest.fixture
async def scene(settings, provider, chain, postgres_server, monkeypatch):
    monkeypatch.setattr(pool, "_TIMEOUT_S", POOL_WAITS_S)
    key = Account.create()
    chain.fund(key.address, eth_wei=10**18, usdc_units=10_000_000)
    settings.data_dir.mkdir()
    with (
        postgres_server.database(migrated=True) as address,
        started_with(Waits(settlement=_SETTLEMENT, refunds=RefundTiming(sweep_s=0.5))),
    ):
        async with lossy_proxy(postgres_server, reaches_server=True) as proxy, receiving() as hooks:
            changed = settings.changed(
                base_url="http://127.0.0.1:8080",
                webhooks="local",
                refund_key=key.key.hex(),
                refunds="manual",
                database_url=proxy.lead_to(address),
                node="a",
            )
            async with staged(changed, provider, chain, proxy, hooks) as one:
                yield one
