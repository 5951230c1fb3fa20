"""The real server killed between any two steps of a voucher sale: one task per redeemed voucher.

The truth is the ledger of the voucher plugin, a separate file that the gateway cannot read.
"""

import contextlib
import http.client
import sqlite3
from pathlib import Path

import pytest

from tests.proof.process.gateway_process import Gateway, until

PLUGIN = Path(__file__).with_name("voucher_plugin.py")
# Each write dies before its commit, and the last one also after it.
DIES_IN_WRITES = """
from gateway.store import method_payments as writes
from gateway.store.sql import as_write

def dying(function, place):
    def run(*arguments, **named):
        from voucher_plugin import die_at
        found = function(*arguments, **named)
        die_at(place)
        return found
    return as_write(run)

for name in ("reserve", "begin_settling", "close"):
    setattr(writes.SqlMethodPayments, name, dying(getattr(writes, name), name))

plain = writes.SqlMethodPayments.close

async def close(self, *arguments, **more):
    from voucher_plugin import die_at
    found = await plain(self, *arguments, **more)
    die_at("the answer")
    return found

writes.SqlMethodPayments.close = close
"""
# The order of a sale: T1, T2, the method before and after it took the money, T3, the 200.
PLACES = ("reserve", "begin_settling", "the question", "the taking", "close", "the answer")
TAKEN = ("the taking", "close", "the answer")
FEW = ("reserve", "the question", "the taking")


@pytest.fixture
def gateway(tmp_path, chain, key):
    started = Gateway(tmp_path, chain, key)
    started.install("voucher_plugin", PLUGIN.read_text())
    started.patch(DIES_IN_WRITES)
    started.let_go()
    started.start()
    yield started
    started.kill()


def serial_of(place):
    return place.replace(" ", "-")


def buy(gateway, serial):
    about = {"X-VOUCHER": f"{serial}:25000"}
    return gateway.request("POST", "/api/x402/slow", {"prompt": serial}, about)


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute(sql).fetchall()


def ledger(gateway):
    """Return the redeemed vouchers: {(claim, task, units)}."""
    return set(rows(gateway.folder / "ledger.db", "SELECT claim, task_id, units FROM taken"))


def sales(gateway):
    """Return (claim, task, units, state of the payment, status) of every stored sale."""
    return rows(
        gateway.folder / "data" / "gateway.db",
        """SELECT c.key, t.id, p.paid_units, p.state, t.status FROM payments p
           LEFT JOIN claims c ON c.payment_id = p.id LEFT JOIN tasks t ON t.payment_id = p.id""",
    )


def is_quiet(gateway):
    return all(row[-1] in ("completed", "failed", "dropped") for row in sales(gateway))


@pytest.mark.parametrize("places", [FEW, pytest.param(PLACES, marks=pytest.mark.full)])
def test_killed_at_any_step_what_was_taken_has_one_task_that_ends(gateway, places):
    for place in places:
        serial = serial_of(place)
        (gateway.folder / f"die at {place}").touch()
        with pytest.raises((OSError, http.client.HTTPException)):
            buy(gateway, serial)
        gateway.process.wait(100)
        taken = f"voucher:{serial}" in {claim for claim, _, _ in ledger(gateway)}
        assert taken == (place in TAKEN)
        gateway.start()
        # No client repeats the request: stored sales must finish on their own.
        until(lambda: is_quiet(gateway))
    before = sales(gateway)
    assert len(before) == len(places) - 1  # of the first nothing was written down
    assert ledger(gateway) == {row[:3] for row in before}
    for place in places:
        status, body = buy(gateway, serial_of(place))
        assert status == 200, body
    until(lambda: is_quiet(gateway))
    after = sales(gateway)
    assert set(before) < set(after)
    assert len(after) == len(places)
    assert ledger(gateway) == {row[:3] for row in after}
    assert {row[2:] for row in after} == {(25_000, "settled", "completed")}
