"""With a full disk, in bytes or inodes, nothing is sold; space held by requests is released."""

import asyncio
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.domain import Attachment, GenerationRequest
from gateway.running.timing import Timing
from gateway.settings import variable
from gateway.store import SqliteStore
from gateway_testing.facts import NOW, authorization, key_of, new_task
from tests.conftest import WALLET, Payer, buy, operators_rows, running
from tests.volumes import fill_bytes, fill_inodes, mounted, needs_root

MEGABYTE = 10**6
FILE = GenerationRequest(attachment=Attachment(name="a.txt", data=b"a" * 2 * MEGABYTE))


@pytest.fixture
def volume(tmp_path) -> Path:
    """A separate volume of 40 MB."""
    with mounted(tmp_path / "volume", "size=40m") as folder:
        yield folder


async def hold(store, nonce: int) -> int:
    """Hold a file of two megabytes for a payment; returns the payment."""
    signed = authorization(nonce)
    task = await store.reserve(new_task(request=FILE), signed, key_of(signed), 0)
    return task.payment.id


async def run_command(settings, *words):
    names = ("base_url", "wallet", "data_dir", "settlement_key")
    env = {variable(name): str(getattr(settings, name)) for name in names}
    env["GATEWAY_RPC_URLS"] = ",".join(settings.rpc_urls)
    return await asyncio.to_thread(CliRunner().invoke, main, list(words), env=env)


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("gateway.db*"))


@needs_root
async def test_a_volume_that_held_requests_filled_sells_again_without_a_restart(
    settings, provider, chain, clock, volume
):
    small = attrs.evolve(settings, data_dir=volume, min_free_disk_mb=30)
    timing = Timing(give_back_space_s=0.05)
    async with running(small, provider, now=clock, timing=timing) as gateway:
        gateway.chain = chain
        await gateway.services.payments.cutoff_block()
        store = gateway.services.store
        held = [await hold(store, nonce) for nonce in range(8)]
        header = Payer(chain).header()
        refusal = await buy(gateway, header)
        assert refusal.status_code == 500
        assert "disk is nearly full" in (await refusal.get_json())["error"]
        for payment_id in held:
            await store.release(payment_id, now=NOW)
        await store.give_back_space()
        answer = await buy(gateway, header)
        assert answer.status_code == 200, await answer.get_json()


async def test_deleted_requests_leave_neither_file_nor_log_large(tmp_path):
    async with SqliteStore(tmp_path / "gateway.db") as store:
        empty = size_of(tmp_path)
        held = [await hold(store, nonce) for nonce in range(20)]
        assert size_of(tmp_path) > 40 * MEGABYTE
        for payment_id in held:
            await store.release(payment_id, now=NOW)
        await store.give_back_space()
        assert size_of(tmp_path) < empty + 6 * MEGABYTE


@needs_root
@pytest.mark.parametrize(("inodes", "left"), [(80, 0), (200, 60), (2_000, 250)])
async def test_a_disk_without_inodes_sells_nothing_until_files_are_deleted(
    settings, provider, chain, tmp_path, inodes, left
):
    options = f"size=512m,nr_inodes={inodes}"
    with mounted(tmp_path / "volume", options) as folder:
        small = attrs.evolve(settings, data_dir=folder, min_free_disk_mb=200)
        async with running(small, provider) as gateway:
            gateway.chain = chain
            header = Payer(chain).header()
            held, before = fill_inodes(folder, but=left), chain.usdc_balance(WALLET)
            refusal = await buy(gateway, header)
            assert refusal.status_code == 500
            assert "nothing was charged" in (await refusal.get_json())["error"]
            _, rows = await operators_rows(gateway)
            assert rows["disk"]["problem"].startswith("The disk is full: free some space.")
            assert f"{left} inodes" in rows["disk"]["problem"]
            assert (chain.usdc_balance(WALLET), provider.requests) == (before, [])
            for path in held:
                path.unlink()
            answer = await buy(gateway, header)
            assert answer.status_code == 200, await answer.get_json()


@needs_root
@pytest.mark.parametrize("fill", [fill_bytes, fill_inodes])
@pytest.mark.parametrize(
    "command",
    [("refunds", "list"), ("tasks",), ("alarms",), ("books",), ("migrate",), ("check",)],
    ids=" ".join,
)
async def test_no_command_on_a_full_disk_advises_another_folder(settings, tmp_path, fill, command):
    with mounted(tmp_path / "volume", "size=8m,nr_inodes=200") as folder:
        async with SqliteStore(folder / "gateway.db"):
            pass
        fill(folder)
        result = await run_command(attrs.evolve(settings, data_dir=folder), *command)
        assert "GATEWAY_DATA_DIR" not in result.output
        if result.exit_code or command == ("check",):
            assert "The disk is full: free some space" in result.output
