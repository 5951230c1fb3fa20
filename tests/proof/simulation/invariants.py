"""The invariants at the end: the gateway's records compared with the chain."""

import json
import sqlite3
from collections import Counter
from typing import Any

import attrs

from gateway import GenerationRequest
from tests.proof.simulation import (
    burners,
    code_payers,
    crowd,
    delegators,
    flippers,
    market,
    old_sales,
    refunds,
    voucher_truth,
)
from tests.proof.simulation.ground import Ground
from tests.proof.simulation.people import DirectPayer, Payer
from tests.proof.simulation.truth import Paid, Truth

_RUNS = ("queued", "processing", "completed", "failed")  # states of a task that was paid for
_SPENT = "invalid_exact_evm_nonce_already_used"


@attrs.frozen
class Row:
    """A task with its payment, and the transfer that really paid for it."""

    task_id: str
    status: str
    flow: str
    state: str
    price_units: int
    request_hash: str
    prompt: str
    payment_id: int
    keys: frozenset[str]  # its claims
    transfer: Paid | None  # as it is on the chain in the end
    seen: Paid | None  # as its record says

    @property
    def runs(self) -> bool:
        return self.status in _RUNS

    def __str__(self) -> str:
        return f"{self.flow} payment {self.payment_id} {self.state}, task {self.status}"


def open_work(ground: Ground) -> bool:
    """Whether anything waits to be settled, generated or refunded."""
    row = ground.db.execute(
        """SELECT EXISTS (SELECT 1 FROM tasks WHERE status IN ('held', 'queued', 'processing'))
           OR EXISTS (SELECT 1 FROM payments WHERE state IN ('reserved', 'settling'))"""
    ).fetchone()
    return bool(row[0]) or bool(refunds.waiting(ground))


def check(ground: Ground, cast: Any) -> list[str]:
    """Return all violations, in one sentence each."""
    truth = Truth(ground.chain)
    rows = _rows(ground.db, truth)
    found = list(ground.surprises)
    found += _stuck(rows)
    found += _used_twice(rows)
    found += _free(rows)
    found += _lost(rows, truth, ground)
    found += refunds.check(ground)
    found += flippers.check(ground, cast.flippers)
    found += burners.check(ground)
    found += delegators.check(ground, cast.delegators)
    found += crowd.check(ground, cast.spoilers)
    found += voucher_truth.check(ground, cast.customers)
    found += old_sales.check(cast.old_buyers, rows)
    found += _nonces(ground.db)
    found += _unwritten(ground)
    found += _forgotten(rows, cast)
    for payer in cast.payers:
        found += _honest(payer, rows, truth)
    found += code_payers.check(ground, cast.code_payers, rows)
    for direct in (*cast.directs, *code_payers.owed(cast.code_payers)):
        found += _direct(direct, rows, truth)
    return found


def _rows(db: sqlite3.Connection, truth: Truth) -> list[Row]:
    claims: dict[int, set[str]] = {}
    for key, payment_id in db.execute("SELECT key, payment_id FROM claims"):
        claims.setdefault(payment_id, set()).add(key)
    rows = []
    for raw in db.execute(
        """SELECT t.id AS task_id, t.status, t.request, p.* FROM tasks t
           JOIN payments p ON p.id = t.payment_id WHERE p.method IS NULL"""
    ):
        keys = frozenset(claims.get(raw["id"], ()))
        seen = None
        if raw["paid_tx"] is not None:
            record = ("paid_tx", "paid_log_index", "payer", "paid_units")
            seen = truth.recorded(*(raw[name] for name in record))
        if raw["flow"] == "x402":
            transfer = next((truth.by_key[key] for key in keys if key in truth.by_key), None)
        else:
            transfer = truth.by_identity.get(seen.identity) if seen is not None else None
        rows.append(
            Row(
                raw["task_id"],
                raw["status"],
                raw["flow"],
                raw["state"],
                raw["price_units"],
                raw["request_hash"],
                json.loads(raw["request"])["prompt"],
                raw["id"],
                keys,
                transfer,
                seen,
            )
        )
    return rows


def _stuck(rows: list[Row]) -> list[str]:
    open_states = ("held", "queued", "processing")
    return [f"STUCK {row}" for row in rows if row.status in open_states]


def _used_twice(rows: list[Row]) -> list[str]:
    uses = Counter(row.transfer.identity for row in rows if row.runs and row.transfer is not None)
    return [f"DOUBLE_USE {identity}" for identity, count in uses.items() if count > 1]


def _free(rows: list[Row]) -> list[str]:
    found = []
    for row in rows:
        if not row.runs:
            continue
        if row.transfer is None or row.transfer.units < row.price_units:
            found.append(f"FREE_TASK {row}")
        elif row.seen is None or row.seen.identity != row.transfer.identity:
            found.append(f"WRONG_RECORD {row}")
    return found


def _lost(rows: list[Row], truth: Truth, ground: Ground) -> list[str]:
    """Money that we moved, or that belongs to a claim of ours, has a task that runs."""
    paying = {row.transfer.identity for row in rows if row.runs and row.transfer is not None}
    claimed = {key: row for row in rows for key in row.keys}
    found = []
    for paid in truth.paid:
        if paid.key is None or paid.identity in paying or paid.units < market.PRICE_UNITS:
            continue
        if ground.chain.sent.get(paid.tx_hash) in ("gateway", "relay"):
            found.append(f"LOST_PAYMENT settled by us for nothing: {paid.key}")
        elif paid.key in claimed:
            found.append(f"LOST_PAYMENT of {claimed[paid.key]}")
    return found


def _nonces(db: sqlite3.Connection) -> list[str]:
    twice = db.execute(
        """SELECT signer, nonce FROM sent_transactions GROUP BY signer, nonce
           HAVING count(DISTINCT payment_id) > 1"""
    )
    return [f"NONCE_TWICE {row['nonce']} of {row['signer']}" for row in twice]


def _unwritten(ground: Ground) -> list[str]:
    """Every transaction from the gateway's keys is recorded; no row is ever deleted."""
    written = {row["tx_hash"] for row in ground.db.execute("SELECT tx_hash FROM sent_transactions")}
    sent = {tx_hash for tx_hash, who in ground.chain.sent.items() if who == "gateway"}
    return [f"UNWRITTEN_TRANSACTION {tx_hash}" for tx_hash in sorted(sent - written)]


def _forgotten(rows: list[Row], cast: Any) -> list[str]:
    """Every client with a 200 has a task for his request."""
    known = {row.task_id: row for row in rows}
    found = []
    buyers = (*cast.payers, *cast.directs, *cast.code_payers, *cast.observers)
    for person in (
        *buyers,
        *cast.cheats,
        *cast.flippers,
        *cast.spoilers,
        *cast.burners,
        *cast.delegators,
    ):
        for task_id, prompt in person.accepted:
            row = known.get(task_id)
            if row is None:
                found.append(f"FORGOTTEN_200 task {task_id}")
            elif row.prompt != prompt:
                found.append(f"OTHERS_TASK told to {prompt}: the one of {row.prompt}")
    return found


def _honest(payer: Payer, rows: list[Row], truth: Truth) -> list[str]:
    """An honest payer is charged once, and not at all after a refusal."""
    own = GenerationRequest(prompt=payer.name).fingerprint(market.SLUG)
    claimed = {key: row for row in rows for key in row.keys}
    charged = [signed for signed in payer.headers if signed.key in truth.by_key]
    taken = [  # by whoever read along and was first
        signed
        for signed in payer.headers
        if signed.key in claimed and claimed[signed.key].request_hash != own
    ]
    # A leaked authorization that we never accepted may still be sent by others.
    foreign = [signed for signed in charged if payer.leaks and signed.key not in claimed]
    found = []
    if len(charged) - len(foreign) > 1 + len(taken):
        found.append(f"CHARGED_TWICE {payer.name}: {len(charged)} transfers")
    if taken and not payer.leaks:
        found.append(f"STOLEN from {payer.name}")
    for signed, reason in payer.refused:
        paid = truth.by_key.get(signed.key)
        if paid is None or signed in taken:
            continue
        if signed.key in claimed or not payer.leaks or reason == _SPENT:
            found.append(f"CHARGED_AFTER_402 {payer.name}: {reason}")
    return found


def _direct(payer: DirectPayer, rows: list[Row], truth: Truth) -> list[str]:
    """A buyer who transferred enough and asked until the end has his picture, unless another was
    faster.
    """
    assert payer.transaction is not None
    tx_hash = payer.transaction.hash
    enough = any(
        paid.tx_hash == tx_hash and paid.units >= market.PRICE_UNITS for paid in truth.paid
    )
    user = next((row for row in rows if f"tx:{tx_hash}" in row.keys), None)
    if payer.gave_up or not enough or payer.accepted:
        return []
    if user is None:
        return [f"LOST_PAYMENT {payer.name} is told {payer.last.status} {payer.last.code}"]
    if user.prompt == payer.name and payer.idempotency_key is not None:
        return [f"LOST_ANSWER {payer.name} is told {payer.last.code} though he named his key"]
    if payer.last.code != "TX_ALREADY_USED":
        return [f"WRONG_ANSWER {payer.name} is told {payer.last.status} {payer.last.code}"]
    return []
