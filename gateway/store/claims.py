"""What the writes of money share: claims, Idempotency-Keys, and the task's own row."""

from gateway.contracts import NewTask
from gateway.domain import Payment, Task, TaskStatus, Transfer
from gateway.errors import IdempotencyConflict
from gateway.store.rows import SELECT_TASK, dump_request, task_of
from gateway.store.sql import Connection


def is_claimed(db: Connection, key: str) -> bool:
    """Return whether a payment has claimed a key."""
    return db.execute("SELECT 1 FROM claims WHERE key = ?", (key,)).fetchone() is not None


def claim(db: Connection, key: str, payment_id: int) -> None:
    """Claim a key; where it is taken, the primary key makes the whole write fail."""
    db.execute("INSERT INTO claims (key, payment_id) VALUES (?, ?)", (key, payment_id))


def check_own(db: Connection, transfer: Transfer, payment_id: int) -> None:
    """Raise `RuntimeError` for a transfer whose authorization this payment did not claim."""
    own = db.execute(
        "SELECT 1 FROM claims WHERE key = ? AND payment_id = ?",
        (transfer.authorization_key, payment_id),
    ).fetchone()
    if own is None:
        raise RuntimeError(f"transfer {transfer.tx_hash} is not of payment {payment_id}")


def find_idempotent(db: Connection, idempotency_hash: str) -> Task | None:
    """Return the task that was accepted under an Idempotency-Key."""
    row = db.execute(f"{SELECT_TASK} WHERE p.idempotency_hash = ?", (idempotency_hash,)).fetchone()
    return task_of(row) if row else None


def check_same_request(known: Task, task: NewTask) -> None:
    """Raise `IdempotencyConflict` where an Idempotency-Key is used for another request."""
    if known.payment.request_hash != task.request_hash:
        raise IdempotencyConflict("This Idempotency-Key was used with another request.")


def insert_task(db: Connection, task: NewTask, payment: Payment, status: TaskStatus) -> Task:
    """Write down a task of a payment, with the file of its request. Returns the task as written."""
    db.execute(
        """INSERT INTO tasks (id, payment_id, slug, capability, status, request, callback_url,
               due_at, created_at, request_id)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            task.id,
            payment.id,
            task.endpoint.slug,
            task.endpoint.capability,
            status.value,
            dump_request(task.request),
            task.request.callback_url,
            task.created_at,
            task.created_at,
            task.request_id or None,
        ),
    )
    if task.request.attachment is not None:
        db.execute(
            "INSERT INTO task_files (task_id, data) VALUES (?, ?)",
            (task.id, task.request.attachment.data),
        )
    return _read_back(task, payment, status)


def _read_back(task: NewTask, payment: Payment, status: TaskStatus) -> Task:
    """Return the task as a read would build it from its new row."""
    return Task(
        id=task.id,
        slug=task.endpoint.slug,
        capability=task.endpoint.capability,
        status=status,
        attempt=0,
        progress=None,
        created_at=task.created_at,
        started_at=None,
        completed_at=None,
        expires_at=None,
        result=None,
        outputs_gone=False,
        code=None,
        error=None,
        details=None,
        payment=payment,
        refund=None,
    )
