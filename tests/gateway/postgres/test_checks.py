"""The findings of `gateway check` about a PostgreSQL."""

import time

import pytest

from gateway.errors import SettingsError
from gateway_nodes.postgres import checks
from gateway_nodes.postgres.migrations import migrate, migrations
from gateway_nodes.postgres.session import connect
from gateway_nodes.postgres.store import PostgresStore

NEWEST = migrations()[-1][0]


@pytest.fixture
def raw(database_url):
    with connect(database_url, "test") as opened:
        yield opened


def test_a_server_is_named_and_writable(raw):
    assert checks.check_server(raw).startswith("PostgreSQL ")


def test_a_server_that_takes_no_writes_is_wrong(raw):
    raw.execute("SET default_transaction_read_only = on")
    with pytest.raises(SettingsError, match="name the primary"):
        checks.check_server(raw)


def test_a_server_that_forgets_is_wrong(raw):
    # The tests' own server is one.
    with pytest.raises(SettingsError, match="forgets payments in a power cut"):
        checks.check_durability(raw)


def test_a_check_makes_no_schema_and_tells_which_there_is(raw, monkeypatch):
    assert checks.check_schema(raw).startswith("empty")
    assert raw.execute("SELECT to_regclass('payments')").fetchone()[0] is None
    migrate(raw)
    assert checks.check_schema(raw) == f"version {NEWEST}"
    monkeypatch.setattr(checks, "migrations", lambda: [*migrations(), (NEWEST + 1, "")])
    assert checks.check_schema(raw) == f"version {NEWEST}; the next start makes it {NEWEST + 1}"


@pytest.mark.parametrize(("ahead_s", "ok"), [(0.0, True), (-30.0, False), (30.0, False)])
def test_a_clock_that_differs_is_wrong(raw, monkeypatch, ahead_s, ok):
    now = checks.time.time
    monkeypatch.setattr(checks.time, "time", lambda: now() + ahead_s)
    if ok:
        assert checks.check_clock(raw).startswith("within ")
    else:
        with pytest.raises(SettingsError, match=r"clock is [23].* s from the database's"):
            checks.check_clock(raw)


def test_a_look_asks_everything_and_changes_nothing(database_url, raw):
    found = {one.name: one for one in checks.run_checks(database_url)}
    assert {name for name, one in found.items() if not one.ok} == {"database durability"}
    assert "connections from all nodes" in found["database sessions"].found
    assert raw.execute("SELECT to_regclass('payments')").fetchone()[0] is None


def test_a_server_that_does_not_answer_is_one_finding_without_the_password():
    (found,) = checks.run_checks("postgresql://gateway:hunter2@127.0.0.1:9/gateway")
    assert not found.ok
    assert "does not answer" in found.found
    assert "hunter2" not in found.found


async def test_a_check_names_the_machines_and_what_none_does(database_url, raw):
    assert checks.check_nodes(raw) == "none runs now"
    async with (
        PostgresStore(database_url, node="a", roles=["web"]) as web,
        PostgresStore(database_url, node="b", roles=["web", "signer"]) as other,
    ):
        await web.nodes.renew(lease_s=60, now=time.time())
        await other.nodes.renew(lease_s=60, now=time.time())
        found = checks.check_nodes(raw)
    assert found.startswith("a (web), b (web, signer). No machine works: ")
    assert found.endswith("Start a machine with GATEWAY_ROLE=worker, or all.")
