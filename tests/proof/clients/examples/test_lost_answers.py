"""The examples with a lost request or response: no purchase is paid twice."""

import re
import sys

import pytest

from gateway_demo.chain import PlayChain
from tests.conftest import PNG, WALLET
from tests.proof.clients.examples.conftest import EXAMPLES, run
from tests.proof.clients.examples.relay import LOST, open_relay

PRICE = 20_000
LATE = (400, '{"error":"The hash has no receipt yet.","code":"TX_NOT_FOUND"}')
DOWN = (502, "<html>bad gateway</html>")


@pytest.fixture
def relay(site):
    with open_relay(site.url) as opened:
        yield opened


@pytest.fixture(params=["py", pytest.param("mjs", marks=pytest.mark.full)])
def buy(request, variables, relay, tmp_path):
    """Returns a function that runs an example of one language through the relay."""
    command = [sys.executable]
    if request.param == "mjs":
        script = request.getfixturevalue("script")
        command = ["node"]

    async def run_it(name, **more):
        file = f"{name}.{request.param}"
        path = script(file) if request.param == "mjs" else EXAMPLES / file
        return await run(
            *command, path, folder=tmp_path, **variables | {"GATEWAY": relay.url}, **more
        )

    return run_it


def printed(ran) -> dict[str, str]:
    """Return the variables that a run has printed for the next one."""
    return dict(re.findall(r"([A-Z_]+)=(\S+)", ran.said))


@pytest.mark.full
async def test_a_lost_purchase_goes_on_in_the_next_run(buy, relay, chain, provider, tmp_path):
    relay.script = [LOST]
    first = await buy("buy")
    assert (first.code, chain.usdc_balance(WALLET)) == (1, PRICE)
    again = await buy("buy", **printed(first))
    assert again.code == 0, again.complained
    assert (tmp_path / "bought.png").read_bytes() == PNG
    assert (chain.usdc_balance(WALLET), len(provider.requests)) == (PRICE, 1)


@pytest.mark.full
async def test_a_gateway_that_sells_its_answers_is_not_paid_for_them(buy, relay, chain):
    relay.sells_polls = True
    ran = await buy("buy")
    assert ran.code != 0
    polls = [is_signed for path, _, is_signed in relay.requests if path.startswith("/api/task/")]
    assert polls
    assert not any(polls)
    assert chain.usdc_balance(WALLET) == PRICE


@pytest.mark.full
async def test_a_transfer_is_offered_again_until_the_gateway_takes_it(
    buy, relay, chain, provider, tmp_path
):
    relay.script = [LATE, DOWN, LOST]
    ran = await buy("direct_with_proof")
    assert ran.code == 0, ran.complained
    assert (tmp_path / "bought.png").read_bytes() == PNG
    assert (chain.usdc_balance(WALLET), len(provider.requests)) == (PRICE, 1)


@pytest.mark.full
async def test_a_transfer_that_was_not_taken_goes_on_in_the_next_run(buy, relay, chain, provider):
    relay.script = [(400, '{"error":"no","code":"VALIDATION_ERROR"}')]
    first = await buy("direct_with_proof")
    assert (first.code, chain.usdc_balance(WALLET)) == (1, PRICE)
    known = printed(first)
    assert f"IDEMPOTENCY_KEY={known['IDEMPOTENCY_KEY']} TX_HASH={known['TX_HASH']}" in (
        first.complained
    )
    again = await buy("direct_with_proof", **known)
    assert again.code == 0, again.complained
    assert (chain.usdc_balance(WALLET), len(provider.requests)) == (PRICE, 1)
    keys = {key for path, key, _ in relay.requests if path == "/api/proxy-generate"}
    assert keys == {known["IDEMPOTENCY_KEY"]}


@pytest.mark.full
async def test_a_gateway_of_another_network_gets_no_transfer(buy, relay, chain):
    relay.network = "base-sepolia"
    ran = await buy("direct_with_proof")
    assert (ran.code, chain.usdc_balance(WALLET)) == (1, 0)
    assert "The gateway sells on base-sepolia, but this script pays on base only." in ran.complained


@pytest.mark.full
async def test_an_rpc_endpoint_of_another_chain_gets_no_transfer(buy, chain, variables):
    with PlayChain(chain_id=84532) as other:
        variables["RPC"] = other.rpc_url
        ran = await buy("direct_with_proof")
        assert (ran.code, other.usdc_balance(WALLET)) == (1, 0)
    assert "RPC is an endpoint of chain 84532, but Base (8453) is needed." in ran.complained
