"""`gateway buy` as a program: one payment, one file, whatever is lost."""
# ruff: noqa: ASYNC110 - polls from outside, without an event

import asyncio
import io
import json
import os
import signal
import stat
import sys

import pytest
from PIL import Image

from gateway.domain import Output, Result
from gateway.domain.eip3009 import checksum_address
from tests.conftest import PNG, WALLET
from tests.proof.clients.examples.conftest import end, start

PRICE = 20_000


@pytest.fixture
def begin(site, payer, tmp_path):
    """Returns a function that starts `gateway buy`."""
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text(bytes(payer.account.key).hex())
    bought = tmp_path / "bought"
    bought.mkdir()

    async def type_in(*words, stdin=asyncio.subprocess.DEVNULL):
        command = [sys.executable, "-m", "gateway", "buy", *words, "--url", site.url]
        if "--task" not in words:
            command += ["--key", str(key)]
        state = str(tmp_path / "state")
        return await start(*command, folder=bought, stdin=stdin, XDG_STATE_HOME=state)

    return type_in


@pytest.fixture
def buy(begin):
    """Returns a function that runs `gateway buy`."""

    async def to_the_end(*words, **options):
        return await end(await begin(*words, **options))

    return to_the_end


async def until_settling(site) -> None:
    async with asyncio.timeout(120):
        while (await site.services.store.counts())["payments"] != {"settling": 1}:
            await asyncio.sleep(0.05)


async def test_it_buys_saves_and_prints_a_receipt(buy, chain, site, payer, tmp_path):
    ran = await buy("sandbox-image", "a boat")
    assert ran.code == 0, ran.complained
    facts = dict(line.split(maxsplit=1) for line in ran.said.splitlines())
    assert (tmp_path / "bought" / facts["file"]).read_bytes() == PNG
    assert facts["paid"] == "0.02 USDC on base"
    assert chain.receipt(facts["transaction"])["status"] == "0x1"
    assert chain.usdc_balance(WALLET) == PRICE
    assert max(map(len, [*ran.said.splitlines(), *ran.complained.splitlines()])) <= 80
    (record,) = (tmp_path / "state" / "generation-gateway" / "purchases").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600

    again = await buy("--task", facts["task"], "--out", "again.png", "--json")
    assert (again.code, json.loads(again.said)["files"]) == (0, ["again.png"]), again.complained
    assert (tmp_path / "bought" / "again.png").read_bytes() == PNG
    assert chain.usdc_balance(WALLET) == PRICE


@pytest.mark.full
async def test_the_models_choices_are_sent(buy, provider):
    wide = io.BytesIO()
    Image.effect_noise((32, 18), 50).save(wide, "WEBP")
    drawn = Output(data=wide.getvalue(), media_type="image/webp")
    provider.script.append(Result(outputs=(drawn,)))
    words = ["--aspect-ratio", "16:9", "--format", "webp", "--resolution", "2K"]
    ran = await buy("sandbox-image", "a boat", *words, "--out", "mine.webp", "--json")
    assert ran.code == 0, ran.complained
    (request,) = provider.requests
    assert (request.aspect_ratio, request.output_format, request.resolution) == (
        "16:9",
        "webp",
        "2K",
    )


async def test_killed_after_the_payment_it_goes_on_with_the_same_payment(
    begin, buy, site, chain, tmp_path, provider
):
    """The chain mines nothing until the program is dead, so its response is lost."""
    chain.set_automine(False)
    words = ("sandbox-image", "a boat", "--idempotency-key", "key-1")
    first = await begin(*words)
    purchases = tmp_path / "state" / "generation-gateway" / "purchases"
    await until_settling(site)
    first.kill()
    await end(first)
    (record,) = purchases.glob("*.json")
    signed = json.loads(record.read_text())["payment"]
    chain.set_automine(True)
    second = await buy(*words)
    assert second.code == 0, second.complained
    assert json.loads(record.read_text())["payment"] == signed
    assert chain.usdc_balance(WALLET) == PRICE
    assert len(provider.requests) == 1


async def test_a_limit_below_the_price_pays_nothing(buy, chain, tmp_path):
    ran = await buy("sandbox-image", "a boat", "--max", "0.019999")
    assert (ran.code, chain.usdc_balance(WALLET)) == (1, 0)
    assert "--max 0.02" in ran.complained
    assert not (tmp_path / "state").exists()


@pytest.mark.full
async def test_without_money_the_gateways_reason_is_told(buy, chain, payer):
    chain.transfer_usdc(payer.account.key, "0x" + "12" * 20, 100_000_000)
    ran = await buy("sandbox-image", "a boat")
    assert (ran.code, chain.usdc_balance(WALLET)) == (1, 0)
    assert "invalid_exact_evm_insufficient_balance" in ran.complained


@pytest.mark.full
async def test_ctrl_c_says_how_to_continue(begin, site, chain):
    chain.set_automine(False)
    process = await begin("sandbox-image", "a boat", "--idempotency-key", "key-1", "--json")
    await until_settling(site)
    process.send_signal(signal.SIGINT)
    ran = await end(process)
    chain.set_automine(True)
    assert ran.code == 130, ran.complained
    assert "run the same command with\n--idempotency-key key-1\n" in ran.complained
    assert json.loads(ran.said)["exitCode"] == 130
    assert "Traceback" not in ran.complained


async def test_on_a_terminal_it_asks_before_it_signs(buy, chain, tmp_path):
    ours, theirs = os.openpty()
    try:
        os.write(ours, b"n\n")
        ran = await buy("sandbox-image", "a boat", stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (ran.code, chain.usdc_balance(WALLET)) == (1, 0)
    assert "Price  0.02 USDC on base\n" in ran.complained
    assert f"To     {checksum_address(WALLET)}\n" in ran.complained
    assert "Nothing was signed." in ran.complained
    assert not (tmp_path / "state").exists()
