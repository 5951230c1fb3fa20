"""Fixtures of refunds: a refund key with play money, and buyers whose tasks fail."""

import attrs
import pytest
from click.testing import CliRunner
from eth_account import Account

from gateway import ContentPolicy
from gateway.cli import main
from gateway.payments.refunds import RefundTiming
from gateway.settings import variable
from tests.conftest import Payer, buy
from tests.waits import Waits, started_with


@pytest.fixture
def refund_key(chain):
    account = Account.create()
    chain.fund(account.address, eth_wei=10**18, usdc_units=1_000_000)
    return account


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr("gateway_operator.desk.refunds._POLL_S", 0.05)
    with started_with(Waits(refunds=RefundTiming(sweep_s=0.05))):
        yield


@pytest.fixture
def settings(settings, refund_key):
    return attrs.evolve(settings, refund_key=refund_key.key.hex(), refunds="manual")


@pytest.fixture
def automatic(settings):
    return attrs.evolve(settings, refunds="automatic")


async def fail_once(gateway, payer: Payer, provider) -> dict:
    """Buy a picture by x402 whose generation fails; return its task."""
    provider.script = [ContentPolicy("No boats.")]
    answer = await buy(gateway, payer.header())
    return await gateway.wait((await answer.get_json())["taskId"])


async def fail_directly(gateway, payer: Payer, provider) -> dict:
    """The same, paid by a plain transfer."""
    provider.script = [ContentPolicy("No boats.")]
    await gateway.services.payments.cutoff_block()
    body = {"slug": "picture", "prompt": "a boat", "txHash": payer.transfer(20_000)}
    answer = await gateway.client.post("/api/proxy-generate", json=body)
    return await gateway.wait((await answer.get_json())["taskId"])


@pytest.fixture
def proxied(settings, proxy):
    return attrs.evolve(settings, rpc_urls=(proxy.url,))


_COMMAND_SETTINGS = ("base_url", "wallet", "data_dir", "settlement_key", "refund_key", "refunds")


def environment(settings) -> dict[str, str]:
    """Return the variables of a command beside the gateway."""
    variables = {variable(name): str(getattr(settings, name)) for name in _COMMAND_SETTINGS}
    return variables | {"GATEWAY_RPC_URLS": ",".join(settings.rpc_urls)}


@pytest.fixture
def run(settings):
    def command(*words, **variables):
        env = environment(settings) | variables
        return CliRunner().invoke(main, list(words), env=env)

    return command
