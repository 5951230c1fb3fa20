"""A contract as wallet can lose payments: it is used only if the operator vouches for it."""
# ruff: noqa: ASYNC110 - polls from outside, without an event

import asyncio
import json

import attrs
import pytest
import structlog
from click.testing import CliRunner

from gateway.chain.client import Web3Chain
from gateway.cli import main
from gateway.errors import ChainUnavailable
from gateway.web.front.current import EXTENSION
from gateway_demo.chain import MULTICALL
from tests.conftest import WALLET, buy, nothing_charged, operators_rows, running


class SilentAboutCode:
    """The chain, but accounts' code is unavailable until the test allows it."""

    def __init__(self, chain) -> None:
        self._chain = chain
        self.is_silent = True
        self.asked = 0

    async def code(self, address: str, **where) -> bytes:
        self.asked += address == WALLET
        if self.is_silent:
            raise ChainUnavailable("The chain does not answer now.")
        return await self._chain.code(address, **where)

    def __getattr__(self, name: str):
        return getattr(self._chain, name)


async def claim(gateway, tx_hash):
    body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}
    return await gateway.client.post("/api/proxy-generate", json=body)


async def rows(gateway) -> tuple[int, dict[str, dict]]:
    return await operators_rows(gateway)


async def is_refused(answer) -> bool:
    return (answer.status_code, (await answer.get_json())["code"]) == (500, "EXECUTION_ERROR")


async def test_nothing_is_sold_to_a_wallet_that_is_a_contract(settings, provider, chain, payer):
    wrong = attrs.evolve(settings, wallet=MULTICALL)
    async with running(wrong, provider) as gateway, nothing_charged(gateway, chain):
        assert await is_refused(await buy(gateway, payer.header(to=MULTICALL)))
        assert await is_refused(await claim(gateway, payer.transfer(20_000, to=MULTICALL)))
        # The address is hidden too, because a transfer to it could not be prevented.
        assert await is_refused(await buy(gateway, None))
        assert await is_refused(await gateway.client.post("/api/x402/picture"))
        assert await is_refused(await gateway.client.get("/.well-known/agent-manifest.json"))
        assert await is_refused(await gateway.client.get("/llms.txt"))


async def test_a_wallet_that_is_a_contract_is_told_in_the_log_and_by_ready(settings, provider):
    with structlog.testing.capture_logs() as lines:
        async with running(attrs.evolve(settings, wallet=MULTICALL), provider) as gateway:
            await gateway.services.wallet.check_until_known()
            status, found = await rows(gateway)
    (logged,) = [line for line in lines if line["event"] == "wallet.is_contract"]
    assert logged["error"] == found["wallet"]["problem"]
    assert "GATEWAY_WALLET_IS_CONTRACT=true" in logged["error"]
    assert (status, found["wallet"]["ok"], found["wallet"]["stops"]) == (503, False, "everything")


async def test_a_contract_that_the_operator_vouches_for_is_paid(settings, provider, payer):
    mine = attrs.evolve(settings, wallet=MULTICALL, wallet_is_contract=True)
    async with running(mine, provider) as gateway:
        answer = await buy(gateway, payer.header(to=MULTICALL))
        task = await gateway.wait((await answer.get_json())["taskId"])
        status, found = await rows(gateway)
    assert (task["status"], status, found["wallet"]["ok"]) == ("completed", 200, True)


async def test_while_the_chain_is_silent_about_the_wallet_the_server_starts_and_sells_nothing(
    settings, provider, chain, payer
):
    silent = SilentAboutCode(Web3Chain(settings))
    async with running(settings, provider, chain=silent) as gateway:
        assert (await gateway.client.get("/llms.txt")).status_code == 200
        async with nothing_charged(gateway, chain):
            assert (await buy(gateway, payer.header())).status_code == 500
        tx_hash = payer.transfer(20_000)
        assert (await claim(gateway, tx_hash)).status_code == 500
        silent.is_silent = False
        answers = [await buy(gateway, payer.header()), await claim(gateway, tx_hash)]
    assert [answer.status_code for answer in answers] == [200, 200]


async def test_a_silent_chain_is_asked_again_until_it_answers(settings, provider):
    wrong = attrs.evolve(settings, wallet=MULTICALL)
    silent = SilentAboutCode(Web3Chain(wrong))
    with structlog.testing.capture_logs() as lines:
        async with running(wrong, provider, chain=silent) as gateway:
            gateway.services.wallet.retry_s = 0.01
            async with asyncio.timeout(60):
                while not any(line["event"] == "wallet.not_checked" for line in lines):
                    await asyncio.sleep(0.01)
            assert (await rows(gateway))[1]["wallet"]["ok"]
            silent.is_silent = False
            async with asyncio.timeout(60):
                while not gateway.services.wallet.is_known:
                    await asyncio.sleep(0.01)
            assert await is_refused(await buy(gateway, None))
    assert [line["event"] for line in lines if line["event"].startswith("wallet.")] == [
        "wallet.not_checked",
        "wallet.is_contract",
    ]


async def test_the_wallet_is_looked_at_once(settings, provider, payer):
    counted = SilentAboutCode(Web3Chain(settings))
    counted.is_silent = False
    async with running(settings, provider, chain=counted) as gateway:
        await gateway.services.wallet.check_until_known()
        for _ in range(3):
            assert (await buy(gateway, payer.header())).status_code == 200
    assert counted.asked == 1


async def test_a_task_that_was_paid_before_is_still_given(settings, provider, payer):
    async with running(settings, provider) as gateway:
        header = payer.header()
        task_id = (await (await buy(gateway, header)).get_json())["taskId"]
        await gateway.wait(task_id)
        gateway.app.extensions[EXTENSION].wallet.problem = "It became one."
        again = await buy(gateway, header)
        assert (await again.get_json())["taskId"] == task_id


@pytest.fixture
def checked(settings, chain, tmp_path, monkeypatch):
    """The rows of `gateway check --json` by name, with some variables changed."""
    monkeypatch.chdir(tmp_path)
    values = {
        "WALLET": WALLET,
        "RPC_URLS": chain.rpc_url,
        "DATA_DIR": tmp_path / "data",
        "SETTLEMENT_KEY": settings.settlement_key,
    }

    def check(**changes) -> dict[str, dict]:
        env = {f"GATEWAY_{name}": str(value) for name, value in (values | changes).items()}
        result = CliRunner().invoke(main, ["check", "--json"], env=env)
        return {row["name"]: row for row in json.loads(result.stdout)}

    return check


def test_the_command_check_says_whether_the_wallet_is_a_contract(checked):
    assert checked()["wallet"]["ok"]
    row = checked(WALLET=MULTICALL)["wallet"]
    assert (row["ok"], "is a contract on base" in row["found"]) == (False, True)
    assert checked(WALLET=MULTICALL, WALLET_IS_CONTRACT="true")["wallet"]["ok"]


def test_the_command_check_says_that_the_gateway_holds_the_wallets_key(checked, gas_key):
    found = checked(WALLET=gas_key.address)
    for name in ("wallet", "settlement"):
        assert not found[name]["ok"]
        assert "is the private key of GATEWAY_WALLET" in found[name]["found"]


def test_the_command_check_names_a_mistyped_setting(checked):
    row = checked(WORKRES="8")["plugins"]
    assert not row["ok"]
    assert "did you mean GATEWAY_WORKERS?" in row["found"]
