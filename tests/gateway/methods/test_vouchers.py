"""Purchases with the vouchers of docs/examples/gateway-vouchers, a third party's plugin."""

import asyncio
import importlib
import secrets
import shutil
import sqlite3
import sys
import time
from pathlib import Path

import attrs
import pytest

from tests.conftest import nothing_charged, running
from tests.gateway.methods.tickets import URL, soon

EXAMPLE = Path(__file__).parents[3] / "docs/examples/gateway-vouchers/src"
SECRET = 4 * "a secret for tests "


@pytest.fixture
def plugin(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield importlib.import_module("gateway_vouchers")
    for name in [name for name in sys.modules if name.split(".")[0] == "gateway_vouchers"]:
        del sys.modules[name]


@pytest.fixture
def settings(settings):
    return settings.changed(vouchers_secret=SECRET)


@pytest.fixture
async def gateway(settings, provider, clock, plugin):
    async with running(settings, provider, [plugin], now=clock) as gateway:
        soon(gateway)
        yield gateway


@pytest.fixture
def voucher(plugin):
    """Return a function that makes a voucher's token."""

    def make(secret=SECRET, **changes) -> str:
        from gateway_vouchers.voucher import Seal, Voucher

        says = {
            "serial": secrets.token_hex(16),
            "value_units": 20_000,
            "expires": int(time.time()) + 3600,
            "gateway": "gateway",
        }
        return Seal(secret).token_of(Voucher(**says | changes))

    return make


def redeemed(settings) -> list[tuple[str, str]]:
    """Return claim and task of each row in the ledger."""
    path = settings.data_dir / "vouchers.db"
    if not path.exists():
        return []
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT claim, task_id FROM redeemed").fetchall()
    finally:
        db.close()


async def pay(gateway, token, **fields):
    headers = {"Authorization": f"Voucher {token}"}
    return await gateway.client.post(URL, json={"prompt": "a boat"} | fields, headers=headers)


async def bought(gateway, token, **fields) -> str:
    answer = await pay(gateway, token, **fields)
    assert answer.status_code == 200, await answer.get_data()
    return (await answer.get_json())["taskId"]


async def refused(gateway, token, **fields) -> str:
    """Pay with a voucher that is refused, and return the reason in header and body."""
    answer = await pay(gateway, token, **fields)
    assert answer.status_code == 402, await answer.get_data()
    reason = (await answer.get_json())["error"]
    assert answer.headers["WWW-Authenticate"].endswith(f'error="{reason}"')
    return reason


async def test_the_402_has_both_challenges(gateway):
    answer = await gateway.client.post(URL, json={"prompt": "a boat"})
    assert answer.status_code == 402
    header = answer.headers["WWW-Authenticate"]
    assert header == 'Voucher realm="gateway", price="0.020000", currency="USDC"'
    assert "PAYMENT-REQUIRED" in answer.headers


async def test_pages_of_other_sites_may_send_and_read_the_headers(gateway):
    asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    answer = await gateway.client.options(URL, headers=asked)
    sent = ", ".join(answer.headers.getlist("Access-Control-Allow-Headers")).split(", ")
    read = ", ".join(answer.headers.getlist("Access-Control-Expose-Headers")).split(", ")
    assert "Authorization" in sent
    assert {"WWW-Authenticate", "Voucher-Receipt"} <= set(read)


async def test_agents_are_told_how_to_pay_with_one(gateway):
    text = await (await gateway.client.get("/llms.txt")).get_data(as_text=True)
    assert "`Authorization: Voucher <token>`" in text


async def test_a_voucher_buys_one_picture_however_often_it_is_sent(
    gateway, settings, voucher, chain, provider
):
    token = voucher()
    answer = await pay(gateway, token)
    task_id = (await answer.get_json())["taskId"]
    assert answer.headers["Voucher-Receipt"].startswith("voucher ")
    assert (await gateway.wait(task_id))["status"] == "completed"
    async with nothing_charged(gateway, chain):
        assert await bought(gateway, token) == task_id
        assert await refused(gateway, token, prompt="another boat") == "payment_already_used"
    assert [task for _, task in redeemed(settings)] == [task_id]
    assert len(provider.requests) == 1


async def test_x402_sells_beside_it(gateway, payer):
    headers = {"X-PAYMENT": payer.header()}
    answer = await gateway.client.post(URL, json={"prompt": "a boat"}, headers=headers)
    assert answer.status_code == 200
    assert "Voucher-Receipt" not in answer.headers
    assert (await gateway.wait((await answer.get_json())["taskId"]))["status"] == "completed"


async def test_a_bad_voucher_is_refused_and_nothing_is_written(gateway, settings, voucher, chain):
    good = voucher()
    async with nothing_charged(gateway, chain):
        assert await refused(gateway, "garbage") == "voucher_malformed"
        assert await refused(gateway, good[:-1]) == "voucher_forged"
        assert await refused(gateway, voucher(4 * "another secret ")) == "voucher_forged"
        assert await refused(gateway, voucher(gateway="b")) == "voucher_of_another_gateway"
        assert await refused(gateway, voucher(expires=1)) == "voucher_expired"
        assert await refused(gateway, voucher(value_units=19_999)) == "insufficient_funds"
    assert redeemed(settings) == []


async def test_of_requests_at_once_one_gets_the_voucher(gateway, settings, voucher):
    token = voucher()
    answers = await asyncio.gather(*(pay(gateway, token, prompt=f"boat {n}") for n in range(50)))
    assert sorted(answer.status_code for answer in answers) == [200, *[402] * 49]
    assert len(redeemed(settings)) == 1


async def test_a_crash_after_the_voucher_was_redeemed_is_one_task(
    gateway, settings, voucher, provider, monkeypatch
):
    method = gateway.services.payments.methods.by_name["voucher"]
    settle, crashes = method.settle, [OSError("the machine is gone")]

    async def settle_and_crash(payment):
        answer = await settle(payment)
        if crashes:
            raise crashes.pop()
        return answer

    monkeypatch.setattr(method, "settle", settle_and_crash)
    token = voucher()
    task_id = await bought(gateway, token)
    assert crashes == []
    assert (await gateway.wait(task_id))["status"] == "completed"
    assert await bought(gateway, token) == task_id
    assert [task for _, task in redeemed(settings)] == [task_id]
    assert len(provider.requests) == 1


async def test_a_start_anew_knows_what_was_redeemed(settings, provider, clock, plugin, voucher):
    token = voucher()
    async with running(settings, provider, [plugin], now=clock) as gateway:
        task_id = await bought(gateway, token)
    clock.offset_s = 7200  # it has expired
    async with running(settings, provider, [plugin], now=clock) as gateway:
        assert await bought(gateway, token) == task_id
        assert await refused(gateway, token, prompt="another boat") == "payment_already_used"


async def test_the_ledger_refuses_what_an_older_database_has_forgotten(
    settings, provider, clock, plugin, voucher, tmp_path
):
    token = voucher()
    async with running(settings, provider, [plugin], now=clock) as gateway:
        await bought(gateway, token)
    older = attrs.evolve(settings, data_dir=tmp_path / "older")
    older.data_dir.mkdir()
    for file in settings.data_dir.glob("vouchers.db*"):
        shutil.copy(file, older.data_dir)
    provider.requests.clear()
    async with running(older, provider, [plugin], now=clock) as gateway:
        assert await refused(gateway, token) == "voucher_already_used"
        assert await refused(gateway, token) == "voucher_already_used"
    assert provider.requests == []
