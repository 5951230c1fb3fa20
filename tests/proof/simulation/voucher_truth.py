"""The invariants of vouchers at the end: the gateway's records compared with the bank's."""

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence

import attrs

from tests.proof.simulation.bank import NAME, Bank
from tests.proof.simulation.ground import Ground
from tests.proof.simulation.voucher_people import (
    Customer,
    Shown,
    VoucherBuyer,
    VoucherCheat,
    Wanted,
)

_PAID = ("settled", "refund_due", "refunding", "refunded", "refund_failed")


@attrs.frozen
class Bought:
    """A task with its payment by voucher."""

    task_id: str
    status: str
    state: str
    claim: str
    header: str
    price_units: int
    paid_units: int | None
    answer: str | None
    wanted: Wanted

    def __str__(self) -> str:
        return f"{self.claim} {self.state}, task {self.task_id} {self.status}"


def check(ground: Ground, customers: Sequence[Customer]) -> list[str]:
    """Return all violations, in one sentence each."""
    bank = ground.bank
    if bank is None:
        return []
    rows = _rows(ground.db)
    found = _ends(rows)
    found += _taken(rows, bank)
    found += _paid(rows, bank)
    for customer in customers:
        for shown in customer.shown:
            found += _find_wrong_tasks(shown, rows, bank)
        found += _refused(customer, rows)
        if isinstance(customer, VoucherBuyer):
            found += _honest(customer, bank)
        if isinstance(customer, VoucherCheat):
            found += _both(customer, ground)
    return found


def _rows(db: sqlite3.Connection) -> list[Bought]:
    return [
        Bought(
            task_id=row["task_id"],
            status=row["status"],
            state=row["state"],
            claim=row["claim"],
            header=row["proof"].decode(),
            price_units=row["price_units"],
            paid_units=row["paid_units"],
            answer=row["answer"],
            wanted=Wanted(json.loads(row["request"])["prompt"], row["slug"]),
        )
        for row in db.execute(
            """SELECT t.id AS task_id, t.status, t.request, t.slug, m.claim, m.proof, m.answer, p.*
               FROM payments p LEFT JOIN method_proofs m ON m.payment_id = p.id
               LEFT JOIN tasks t ON t.payment_id = p.id WHERE p.method IS NOT NULL"""
        )
    ]


def _ends(rows: list[Bought]) -> list[str]:
    """A paid task ends on its own, and an unpaid one is dropped."""
    ends = {"released": ("dropped",)} | dict.fromkeys(_PAID, ("completed", "failed"))
    return [f"VOUCHER_STUCK {row}" for row in rows if row.status not in ends.get(row.state, ())]


def _taken(rows: list[Bought], bank: Bank) -> list[str]:
    """Each voucher that the bank took has one task; none is taken twice."""
    uses = Counter(entry.serial for entry in bank.ledger.values() if entry.refusal is None)
    found = [f"VOUCHER_TWICE {serial}" for serial, count in uses.items() if count > 1]
    for entry in bank.ledger.values():
        own = [row for row in rows if row.claim == entry.claim]
        if [row.task_id for row in own] != [entry.task_id]:
            found.append(f"VOUCHER_LOST {entry} has the tasks {list(map(str, own))}")
            continue
        is_paid = own[0].state in _PAID
        if is_paid != (entry.refusal is None):
            found.append(f"VOUCHER_MISTOLD {entry} is {own[0]}")
        if is_paid and own[0].paid_units != entry.units:
            found.append(f"VOUCHER_VALUE {entry} is written down as {own[0].paid_units}")
    return found


def _paid(rows: list[Bought], bank: Bank) -> list[str]:
    """No task lacks money, and no payment ends without the bank's decision."""
    found = []
    for row in rows:
        entry = bank.ledger.get(row.claim)
        if entry is None or row.answer is None:
            found.append(f"VOUCHER_UNASKED {row}")
        elif row.state in _PAID and (entry.refusal or entry.units < row.price_units):
            found.append(f"VOUCHER_UNPAID {row}")
    return found


def _find_wrong_tasks(shown: Shown, rows: list[Bought], bank: Bank) -> list[str]:
    """A 200 names a task for that request, bought with the same owner's voucher."""
    if shown.answer.task_id is None:
        return []
    row = next((row for row in rows if row.task_id == shown.answer.task_id), None)
    if row is None:
        return [f"VOUCHER_FORGOTTEN task {shown.answer.task_id}"]
    if row.wanted != shown.wanted:
        return [f"VOUCHER_OTHERS_TASK told to {shown.wanted}: {row.wanted}"]
    genuine = {voucher.header: voucher.owner for voucher in bank.issued.values()}
    # Another voucher of the same owner may have bought it, under one Idempotency-Key.
    if genuine.get(shown.header) != genuine[row.header]:
        return [f"VOUCHER_STOLEN {row} told for {shown.header}"]
    return []


def _refused(customer: Customer, rows: list[Bought]) -> list[str]:
    """After a 402 nothing was taken, unless the request was repeated and ended later."""
    last = {(shown.header, shown.wanted): shown.answer for shown in customer.shown}
    return [
        f"VOUCHER_TAKEN_AFTER_402 {row}: {answer.code}"
        for row in rows
        if row.state in _PAID
        and (answer := last.get((row.header, row.wanted))) is not None
        and answer.status == 402
    ]


def _honest(buyer: VoucherBuyer, bank: Bank) -> list[str]:
    """A buyer who uses another voucher after a 402, or under one key, is charged once."""
    own = {voucher.serial for voucher in buyer.vouchers}
    taken = [e.serial for e in bank.ledger.values() if e.refusal is None and e.serial in own]
    return [f"VOUCHERS_TAKEN {buyer.name}: {taken}"] if len(taken) > 1 else []


def _both(cheat: VoucherCheat, ground: Ground) -> list[str]:
    """Two payments in one request: neither is used."""
    found = []
    for signed, shown in cheat.both:
        claim = f"{NAME}:{shown.header.partition('|')[0]}"
        if shown.answer.status not in (0, 400):
            found.append(f"BOTH_WAYS answered {shown.answer.status} {shown.answer.code}")
        used = ground.db.execute(
            "SELECT key FROM claims WHERE key IN (?, ?)", (signed.key, claim)
        ).fetchall()
        found += [f"BOTH_WAYS used {row['key']}" for row in used]
    return found
