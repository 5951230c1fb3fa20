"""A payment method with its own ledger, in a file beside the gateway's database.

It is on the path of a real `gateway serve`; see test_killed_vouchers.py. A voucher is
`<serial>:<value in micro-USDC>`, valid unless it was taken for another task.
"""

import asyncio
import contextlib
import os
import pathlib
import sqlite3

from gateway import Challenge, MethodProof, PaymentRequired, Refused, Taken, hookimpl

FOLDER = pathlib.Path(os.environ["SLOW_FOLDER"])


def die_at(place):
    """Kill -9 this process where the test wants it, once."""
    order = FOLDER / f"die at {place}"
    if order.exists():
        order.unlink()
        os.kill(os.getpid(), 9)


class Vouchers:
    name = "voucher"
    header_names = ("X-VOUCHER",)

    def challenge(self, quote, reason, version):
        return Challenge(body={}, headers={})

    def read(self, header):
        serial, _, units = header.partition(":")
        return MethodProof(
            key=serial, data=header.encode(), value_units=int(units), payer=f"owner of {serial}"
        )

    async def check(self, proof, quote, now):
        with contextlib.closing(self._open()) as ledger:
            taken = ledger.execute("SELECT 1 FROM taken WHERE claim = ?", (f"voucher:{proof.key}",))
            if taken.fetchone():
                raise PaymentRequired("voucher_spent")

    async def settle(self, payment):
        die_at("the question")
        answer = await asyncio.to_thread(self._take, payment)
        die_at("the taking")
        return answer

    def _take(self, payment):
        """Take a claim for the first task that asks, durably before the response."""
        with contextlib.closing(self._open()) as ledger:
            ledger.execute(
                "INSERT OR IGNORE INTO taken VALUES (?, ?, ?)",
                (payment.claim, payment.task_id, payment.value_units),
            )
            (task_id,) = ledger.execute(
                "SELECT task_id FROM taken WHERE claim = ?", (payment.claim,)
            ).fetchone()
        return Taken("receipt") if task_id == payment.task_id else Refused("voucher_spent")

    def _open(self):
        ledger = sqlite3.connect(FOLDER / "ledger.db", isolation_level=None)
        ledger.execute(
            "CREATE TABLE IF NOT EXISTS taken (claim TEXT PRIMARY KEY, task_id TEXT, units INTEGER)"
        )
        return ledger

    def receipt_headers(self, proof, reference):
        return {}


@hookimpl
def register_payment_method(register, context):
    register(Vouchers())
