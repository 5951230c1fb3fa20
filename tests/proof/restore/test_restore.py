"""The restore drill: after restoring a copy, later payments pay for nothing again."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.settings import variable
from gateway_demo.chain.node import BLOCK_TIME_S
from tests.conftest import WALLET, buy, running
from tests.waits import Waits, started_with

NAMES = ("base_url", "wallet", "data_dir", "settlement_key")


@pytest.fixture
def run(settings):
    env = {variable(name): str(getattr(settings, name)) for name in NAMES}
    env["GATEWAY_RPC_URLS"] = ",".join(settings.rpc_urls)
    return lambda *words, **more: CliRunner().invoke(main, list(words), env=env | more)


async def pay_directly(gateway, tx_hash):
    body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}
    return await gateway.client.post("/api/proxy-generate", json=body)


async def code_of(gateway, tx_hash) -> str | None:
    return (await (await pay_directly(gateway, tx_hash)).get_json()).get("code")


@pytest.fixture
def quick():
    """Give up soon on an unknown outcome."""
    with started_with(Waits(outcome_s=0.5)):
        yield


async def test_the_drill(settings, provider, payer, chain, clock, run, tmp_path, quick):
    copy = tmp_path / "copy.db"
    async with running(settings, provider, now=clock) as gateway:
        await gateway.services.payments.cutoff_block()
        before = payer.transfer(20_000)
        kept = await (await pay_directly(gateway, before)).get_json()
        await gateway.wait(kept["taskId"])
        made = await asyncio.to_thread(run, "backup", str(copy))  # while the gateway runs
        assert made.exit_code == 0, made.output
        since = payer.transfer(20_000)
        assert (await pay_directly(gateway, since)).status_code == 200
        header = payer.header()
        bought = await (await buy(gateway, header)).get_json()
        never_claimed = payer.transfer(20_000)
        await gateway.wait(bought["taskId"])
    asked = len(provider.requests)
    # A transfer is in the next block: without this, a block may be younger than the restored
    # database.
    await asyncio.sleep(BLOCK_TIME_S)
    restored = run("restore", str(copy))
    assert restored.exit_code == 0, restored.output
    async with running(settings, provider, now=clock) as gateway:
        await gateway.services.payments.cutoff_block()
        assert await code_of(gateway, before) == "TX_ALREADY_USED"
        assert await code_of(gateway, since) == "INVALID_PAYMENT"
        assert await code_of(gateway, never_claimed) == "INVALID_PAYMENT"
        again = await buy(gateway, header)
        assert again.status_code in (200, 402)  # held at most: its money was used before
        assert len(provider.requests) == asked
        chain.mine()
        fresh = payer.transfer(20_000)
        assert (await pay_directly(gateway, fresh)).status_code == 200
    assert chain.usdc_balance(WALLET) == 5 * 20_000
    listed = await asyncio.to_thread(run, "transfers", "unused", "--hours", "0", "--json")
    unused = json.loads(listed.stdout)
    assert {row["transaction"] for row in unused} >= {since, never_claimed}


def test_the_replaced_database_is_kept(settings, provider, run, tmp_path):
    async def start_once():
        async with running(settings, provider):
            pass

    asyncio.run(start_once())
    run("backup", str(tmp_path / "copy.db"))
    output = run("restore", str(tmp_path / "copy.db")).output
    (kept,) = settings.data_dir.glob("gateway.db.before-restore-*")
    assert str(kept) in output


def test_each_restore_keeps_what_it_replaces_also_within_a_second(
    settings, provider, run, tmp_path
):
    async def start_once():
        async with running(settings, provider):
            pass

    asyncio.run(start_once())
    run("backup", str(tmp_path / "copy.db"))
    for _ in range(3):
        assert run("restore", str(tmp_path / "copy.db")).exit_code == 0
    assert len(list(settings.data_dir.glob("gateway.db.before-restore-*"))) == 3


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda copy: None, "There is no file"),
        (lambda copy: copy.write_bytes(b"nonsense" * 1000), "not a database"),
    ],
)
def test_a_copy_that_is_none_is_refused(settings, run, tmp_path, prepare, message):
    prepare(tmp_path / "copy.db")
    result = run("restore", str(tmp_path / "copy.db"))
    assert (result.exit_code, message in result.output) == (1, True), result.output
    assert not (settings.data_dir / "gateway.db").exists()


async def test_a_copy_of_another_network_is_refused(settings, provider, run, tmp_path):
    async with running(settings, provider):
        await asyncio.to_thread(run, "backup", str(tmp_path / "copy.db"))
    other = {"GATEWAY_NETWORK": "base-sepolia", "GATEWAY_DATA_DIR": str(tmp_path / "other")}
    result = await asyncio.to_thread(run, "restore", str(tmp_path / "copy.db"), **other)
    assert "is of network base" in result.output


def test_a_running_gateway_is_not_restored_under(settings, run, tmp_path):
    from gateway.store.data_folder import lock_data

    lock = lock_data(settings)
    result = run("restore", str(tmp_path / "copy.db"))
    lock.close()
    assert (result.exit_code, "Another gateway uses" in result.output) == (1, True)


def test_a_backup_overwrites_nothing(settings, provider, run, tmp_path):
    async def start_once():
        async with running(settings, provider):
            pass

    asyncio.run(start_once())
    (tmp_path / "copy.db").write_text("precious")
    result = run("backup", str(tmp_path / "copy.db"))
    assert (result.exit_code, "exists already" in result.output) == (1, True)
    assert (tmp_path / "copy.db").read_text() == "precious"
