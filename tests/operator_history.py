"""Writes past sales into a database, as functions of its connection."""

import attrs

from gateway.contracts.payment_methods import MethodProof, Refused, Taken
from gateway.domain import Authorization, PaymentState
from gateway.store import leases, method_payments, tasks
from gateway.store.rows import dump
from gateway.store.sql import Connection
from gateway_testing.facts import RESULT, new_task

_VALID_S = 600
# A refund's transaction has its payment's number plus this.
_REFUNDS_FROM = 2**40
_WALLET = "0x" + "cd" * 20


@attrs.frozen(kw_only=True)
class Sale:
    """One past sale. Money is in units of 10⁻⁶, times are Unix seconds."""

    at: float
    slug: str = "picture"
    units: int = 20_000
    # The task's: queued, processing, completed or failed.
    status: str = "completed"
    # The payment's; empty: settled, or refund_due if the task failed.
    state: str = ""
    took_s: float = 2.0
    cost_micros: int | None = None
    details: str = "provider_error"
    reason: str = "The provider answers 500."
    decision: str | None = None
    proven: bool = True
    payer: str = "0x" + "ab" * 20
    gas_wei: int | None = None


def add_sale(db: Connection, sale: Sale, number: int | None = None) -> str:
    """Write one sale and return the task's id; by default its payment gets the next number."""
    if number is None:
        number = db.execute("SELECT count(*) FROM payments").fetchone()[0] + 1
    state = sale.state or ("refund_due" if sale.status == "failed" else "settled")
    is_paid = state not in ("reserved", "settling", "released")
    paid = (f"0x{number:064x}", 0, sale.units) if is_paid else (None, None, None)
    db.execute(
        """INSERT INTO payments (id, flow, state, request_hash, price_units, payer, "authorization",
               search_from_block, paid_tx, paid_log_index, paid_units, payer_proven, created_at,
               updated_at)
           VALUES (?, 'x402', ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)""",
        (
            *(number, state, f"{number:064x}", sale.units, sale.payer),
            _authorize(number, sale),
            *(*paid, int(sale.proven), sale.at, sale.at + 1),
        ),
    )
    task_id = _add_task(db, number, sale)
    if state.startswith("refund"):
        db.execute(
            """INSERT INTO refunds (payment_id, amount_units, recipient, reason, decision, tx_hash,
                   created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                *(number, sale.units, sale.payer, sale.reason, sale.decision),
                f"0x{number + _REFUNDS_FROM:064x}" if state == "refunded" else None,
                *(sale.at, sale.at),
            ),
        )
    if sale.gas_wei is not None:
        db.execute(
            """INSERT INTO sent_transactions (tx_hash, payment_id, signer, nonce, raw, max_fee_wei,
                   max_priority_wei, sent_at, mined, gas_wei, l1_fee_wei, mined_at)
               VALUES (?, ?, '0xkey', ?, ?, 1, 1, ?, 1, ?, 0, ?)""",
            (f"0x{number:064x}", number, number, b"\0", sale.at, sale.gas_wei, sale.at + 1),
        )
    return task_id


def _authorize(number: int, sale: Sale) -> str:
    """Return the payer's authorization, as the store keeps it."""
    signed = Authorization(
        sender=sale.payer,
        recipient=_WALLET,
        value_units=sale.units,
        valid_after=0,
        valid_before=int(sale.at) + _VALID_S,
        nonce=f"0x{number:064x}",
        # A smart wallet's, which is longer than the 65 bytes of a plain account.
        signature=b"\xab" * 200,
    )
    return dump(signed)


def _add_task(db: Connection, number: int, sale: Sale) -> str:
    task_id = f"task_{number:024x}"
    is_done = sale.status in ("completed", "failed")
    is_failed = sale.status == "failed"
    db.execute(
        """INSERT INTO tasks (id, payment_id, slug, capability, status, request, due_at, result,
               code, error, details, reason, created_at, started_at, completed_at, cost_micros,
               cost_source)
           VALUES (?, ?, ?, 'text-to-image', ?, '{"prompt": "a"}', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
               ?)""",
        (
            *(task_id, number, sale.slug, sale.status, sale.at),
            "{}" if sale.status == "completed" else None,
            *(("GENERATION_FAILED", "Failed.") if is_failed else (None, None)),
            *((sale.details, sale.reason) if is_failed else (None, None)),
            *(sale.at, sale.at, sale.at + sale.took_s if is_done else None),
            *(sale.cost_micros, None if sale.cost_micros is None else "told"),
        ),
    )
    return task_id


def add_sales(db: Connection, sales: list[Sale]) -> list[str]:
    """Write several sales and return their tasks' ids."""
    return [add_sale(db, sale) for sale in sales]


def add_method_sale(
    db: Connection,
    *,
    at: float,
    state: PaymentState = PaymentState.SETTLED,
    refund_to: str | None = None,
    serial: str = "serial-1",
) -> str:
    """Write a sale by the method `voucher`, worth 0.05 USDC, and return the task's id.

    `state` is reserved, settling, released, settled or refund_due.
    """
    task = new_task(id=f"task_{serial}", created_at=at)
    proof = MethodProof(
        key=serial,
        data=b"signed",
        value_units=50_000,
        payer=f"Voucher {serial}",
        refund_to=refund_to,
    )
    reserved = method_payments.reserve(db, task, "voucher", proof, None, 0)
    assert reserved is not None
    payment_id = reserved.payment.id
    if state is not PaymentState.RESERVED:
        method_payments.begin_settling(db, payment_id, at)
    if state is PaymentState.RELEASED:
        method_payments.close(db, payment_id, Refused("It expired."), at)
    elif state in (PaymentState.SETTLED, PaymentState.REFUND_DUE):
        method_payments.close(db, payment_id, Taken("receipt-1"), at)
        _end_task(db, task.id, at, fails=state is PaymentState.REFUND_DUE)
    return task.id


def _end_task(db: Connection, task_id: str, at: float, *, fails: bool) -> None:
    """End the one due task within the write that queued it, so that no worker gets it."""
    (lease,) = leases.lease_due(db, 1, 60.0, at, ())
    assert lease.task_id == task_id
    if fails:
        tasks.fail(db, lease, "provider_error", "It failed.", at, "No boats.", "vendor")
    else:
        tasks.complete(db, lease, RESULT, at + 86_400, at, None, "vendor")
