"""The copies that `restore` accepts, the data it keeps, and the new creation time."""

import asyncio
import contextlib
import json
import sqlite3
import time

import attrs
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.errors import SettingsError
from gateway.settings import variable
from gateway_backups import sqlite as backup
from tests.conftest import running
from tests.proof.faults.proxy import FaultProxy, says
from tests.proof.restore.test_restore import pay_directly

NAMES = ("base_url", "wallet", "data_dir", "settlement_key")


@pytest.fixture
def run(settings):
    env = {variable(name): str(getattr(settings, name)) for name in NAMES}
    env["GATEWAY_RPC_URLS"] = ",".join(settings.rpc_urls)
    return lambda *words, **more: CliRunner().invoke(main, list(words), env=env | more)


@pytest.fixture
def born(settings, provider) -> str:
    """Start the gateway once; return its secret, which identifies its database."""

    async def start_once() -> None:
        async with running(settings, provider):
            pass

    asyncio.run(start_once())
    return secret_of(settings.data_dir / "gateway.db")


def secret_of(path) -> str:
    with contextlib.closing(sqlite3.connect(path)) as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'session_secret'").fetchone()
    return row[0]


def mark(path, secret) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'session_secret'", (secret,))
        db.commit()


def empty(path) -> None:
    path.write_bytes(b"")


def of_another_program(path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (text)")
        db.commit()


@pytest.mark.parametrize("write", [empty, of_another_program])
def test_a_database_that_is_no_gateways_is_refused_and_nothing_is_replaced(
    settings, born, run, tmp_path, write
):
    """An empty file is a valid SQLite database, and would lose every payment."""
    write(tmp_path / "copy.db")
    result = run("restore", str(tmp_path / "copy.db"))
    assert (result.exit_code, "not a gateway's database" in result.output) == (1, True)
    assert secret_of(settings.data_dir / "gateway.db") == born
    assert not list(settings.data_dir.glob("*before-restore*"))


@pytest.mark.parametrize("name", ["a#b.db", "a?mode=rw.db", "100%.db", "a%41.db", "ä b.db"])
def test_a_copy_may_have_any_name(settings, born, run, tmp_path, name):
    copy = tmp_path / name
    assert run("backup", str(copy)).exit_code == 0
    mark(settings.data_dir / "gateway.db", "since")
    result = run("restore", str(copy))
    assert result.exit_code == 0, result.output
    assert secret_of(settings.data_dir / "gateway.db") == born
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "data"])


def test_two_restores_in_one_second_lose_no_database(settings, born, run, tmp_path):
    run("backup", str(tmp_path / "copy.db"))
    now = time.time()
    for secret in ("first", "second"):
        mark(settings.data_dir / "gateway.db", secret)
        with contextlib.suppress(SettingsError):
            backup.restore(settings, tmp_path / "copy.db", now=now)
    found = [path for path in settings.data_dir.glob("gateway.db*") if is_database(path)]
    assert {"first", "second"} <= {secret_of(path) for path in found}


def is_database(path) -> bool:
    return path.suffix != ".restoring" and path.read_bytes()[:6] == b"SQLite"


# -- an endpoint that lags when the restored database is created


@pytest.fixture
def proxy(chain):
    with FaultProxy(chain) as proxy:
        yield proxy


@pytest.fixture
def proxied(settings, proxy):
    return attrs.evolve(settings, rpc_urls=(proxy.url,))


def lagging(chain):
    """Return a fault: the newest block is frozen; every other is known."""
    newest = chain.rpc.result("eth_getBlockByNumber", "latest", False)

    def answer(proxy, request, body):
        if request["params"][0] == "latest":
            return says(newest)(proxy, request, body)
        return 200, chain.rpc.answer(body)

    return answer


async def code_of(gateway, tx_hash) -> str:
    return (await (await pay_directly(gateway, tx_hash)).get_json())["code"]


@pytest.mark.parametrize("lag_s", [0, 300])
async def test_a_hash_paid_since_the_copy_pays_nothing_though_an_endpoint_lagged_at_the_birth(
    proxied, proxy, provider, payer, chain, clock, tmp_path, lag_s
):
    copy = tmp_path / "copy.db"
    async with running(proxied, provider, now=clock) as gateway:
        await gateway.services.payments.cutoff_block()
        backup.back_up(proxied, copy)
        stale = lagging(chain)
        chain.advance(lag_s)
        since = payer.transfer(20_000)
        assert (await pay_directly(gateway, since)).status_code == 200
    clock.offset_s += lag_s + 30
    backup.restore(proxied, copy, now=clock())
    proxy.break_call("eth_getBlockByNumber", stale)
    async with running(proxied, provider, now=clock) as gateway:
        await gateway.services.payments.cutoff_block()
        assert await code_of(gateway, since) == "INVALID_PAYMENT"
        proxy.heal()
        assert await code_of(gateway, since) == "INVALID_PAYMENT"
        chain.advance(60)
        fresh = payer.transfer(20_000)
        assert (await pay_directly(gateway, fresh)).status_code == 200
    assert len(provider.requests) <= 2


async def test_the_floor_that_a_lagging_endpoint_names_is_not_kept(
    proxied, proxy, provider, chain, clock
):
    stale = lagging(chain)
    chain.advance(300)
    chain.mine(5)
    clock.offset_s += 300
    async with running(proxied, provider, now=clock) as gateway:
        services = gateway.services
        before = chain.block.number
        services.payments.born_at = clock()
        proxy.break_call("eth_getBlockByNumber", stale)
        low = await services.payments.cutoff_block()
        assert low < before - 3
        assert await services.store.known_meta("floor_block") is None
        proxy.heal()
        # Only a head that is younger than the database proves that the endpoint does not lag.
        chain.advance(1)
        assert await services.payments.cutoff_block() >= before
        assert int(json.loads(await services.store.known_meta("floor_block"))) >= before
