"""`gateway check`: each mistake of an operator is reported in its own row."""

import json
import time

import pytest
from click.testing import CliRunner

from gateway.chain.keys import address_of, load_settlement_keys
from gateway.cli import main
from gateway.errors import SettingsError
from gateway.store.data_folder import open_store
from gateway_check.database import find_checks
from gateway_testing.facts import NOW, SIGNER, reserved, signed_transaction
from tests.gateway.refunds.conftest import environment
from tests.migrated_databases import put_database
from tests.proof.faults.proxy import limits_logs
from tests.redis_server import run_redis


@pytest.fixture
def rows(settings):
    """Return the rows of `gateway check` by name."""

    def check(**variables) -> dict[str, dict]:
        result = CliRunner().invoke(
            main, ["check", "--json"], env=environment(settings) | variables
        )
        return {row["name"]: row for row in json.loads(result.stdout)}

    return check


def test_one_key_for_settlements_and_refunds_is_refused(rows, settings):
    row = rows(GATEWAY_REFUND_KEY=settings.settlement_key)["refunds"]
    assert not row["ok"]
    assert "GATEWAY_REFUND_KEY is the settlement key" in row["found"]


def test_an_empty_settlement_key_is_named_with_what_it_holds(rows):
    row = rows(GATEWAY_SETTLEMENT_KEY="0x" + "5e" * 32)["settlement"]
    assert not row["ok"]
    assert "holds 0.000000 ETH for gas, enough for about 0 settlements" in row["found"]


@pytest.mark.parametrize(("offset_s", "words"), [(600, "ahead of"), (-600, "behind")])
def test_a_clock_that_is_off_is_called_the_clock(rows, monkeypatch, offset_s, words):
    now = time.time
    monkeypatch.setattr("time.time", lambda: now() + offset_s)
    found = rows()
    assert not found["clock"]["ok"]
    assert f"s {words} the newest block" in found["clock"]["found"]
    # With a clock that is ahead, each endpoint's newest block seems old.
    assert found["rpc 1"]["ok"] or "the clock is ahead" in found["rpc 1"]["found"]


def test_it_goes_on_without_the_pages_values_if_the_database_is_not_read(rows, settings):
    settings.data_dir.mkdir(exist_ok=True)
    (settings.data_dir / "gateway.db").write_bytes(b"no database" * 100)
    found = rows(GATEWAY_SETTINGS_SECRET="0123456789abcdef0123456789abcdef")
    assert found["settings"]["result"] == "note"
    assert "without what is set on the page: The database" in found["settings"]["found"]
    assert not found["database"]["ok"]
    assert found["clock"]["ok"]


def no_old_state(chain, kept_blocks):
    """Return the fault of an endpoint that keeps the state of its newest blocks only."""

    def answer(proxy, request, body):
        at = request["params"][1]
        if at.startswith("0x") and int(at, 16) < chain.block.number - kept_blocks:
            words = {"code": -32000, "message": "missing trie node"}
            return 200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": words}).encode()
        return 200, proxy.chain.rpc.answer(body)

    return answer


STATE = "eth_call authorizationState"
SLOW = "sales work, but `gateway transfers unused` and `gateway books --reconcile` would take"
NO_STATE = "it keeps no state of two hours ago, so the transaction that spent a nonce must be"


@pytest.mark.parametrize(
    ("most", "has_state", "is_ok", "words"),
    [
        (5_000, True, True, " ms, keeps old state"),
        (500, True, True, ", keeps old state, logs limited to 500 blocks per request"),
        (10, True, False, SLOW),
        (10, True, False, "answers for the logs of 10 blocks at once, and this search needs 10"),
        (5_000, False, True, "no old state: a search for a spent nonce reads logs, 1 query"),
        (500, False, True, "no old state: a search for a spent nonce reads logs, 5 queries"),
        (4, False, False, NO_STATE),
        (4, False, False, "4 blocks at once, and this search needs 6. Name another endpoint in"),
    ],
)
def test_an_rpc_endpoint_must_allow_the_searches(rows, chain, proxy, most, has_state, is_ok, words):
    chain.mine(2_000)
    proxy.break_call("eth_getLogs", limits_logs(most, "up to a {most} block range"))
    if not has_state:
        proxy.break_call(STATE, no_old_state(chain, kept_blocks=128))
    row = rows(GATEWAY_RPC_URLS=proxy.url)["rpc 1"]
    assert (row["ok"], words in row["found"]) == (is_ok, True), row["found"]


def test_an_rpc_endpoint_without_logs_is_wrong(rows, proxy):
    proxy.break_call("eth_getLogs", limits_logs(0, "eth_getLogs is disabled"))
    row = rows(GATEWAY_RPC_URLS=proxy.url)["rpc 1"]
    assert not row["ok"]
    assert "eth_getLogs is disabled" in row["found"]


def test_the_redis_of_the_limits_is_asked_where_one_is_set(rows, tmp_path):
    assert "limits" not in rows()
    for server in run_redis(tmp_path):
        row = rows(GATEWAY_LIMITS_URL=server.url)["limits"]
        assert row["ok"], row["found"]
        assert "Redis counts the requests of all nodes" in row["found"]
        server.stop()
        row = rows(GATEWAY_LIMITS_URL=server.url)["limits"]
        assert not row["ok"]
        assert (
            "Redis is unusable, so each node counts on its own: "
            f"Error 111 connecting to 127.0.0.1:{server.port}" in row["found"]
        )


async def test_a_key_that_signs_no_more_is_named(settings):
    put_database(settings.data_dir / "gateway.db")
    check = dict(await find_checks(settings))["open payments"]
    (secret,) = load_settlement_keys(settings)

    async def sign(store, number, signer):
        task = await reserved(store, number)
        transaction = signed_transaction(number, signer=signer)
        await store.begin_settling(task.payment.id, transaction, now=NOW)

    async with open_store(settings) as store:
        for number in range(64):
            await sign(store, number, address_of(secret))
        # As many of a key that was removed.
        for number in range(64, 128):
            await sign(store, number, SIGNER)
    with pytest.raises(SettingsError, match=r"^0x\w+ has 64 transactions .* add keys"):
        await check()
    async with open_store(settings) as store:
        await store.mark_mined(address_of(secret), 1)
    # The payment stays open, but its nonce is mined.
    assert "64 signed by 0x" in await check()
