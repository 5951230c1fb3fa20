"""Which tasks, payments and refunds need a running process."""

from gateway.store.sql import Connection

# A refund with a problem waits for the operator, for cheaper gas or for the daily cap. It is tried
# again after the next start. A problem of the first minutes may pass, such as a silent node.
_FRESH_S = 300.0
_REFUNDS = """SELECT 1 FROM payments p JOIN refunds r ON r.payment_id = p.id
    WHERE p.state IN ('refund_due', 'refunding') AND (r.problem IS NULL OR r.updated_at > ?)
        AND (p.state = 'refunding' OR r.decision = 'approved'{automatic})"""
_AUTOMATIC = " OR (r.decision IS NULL AND p.payer_proven = 1)"
_ANY = """SELECT
    EXISTS (SELECT 1 FROM tasks WHERE status IN ('held', 'queued', 'processing')) AS tasks,
    EXISTS (SELECT 1 FROM payments WHERE state IN ('reserved', 'settling')) AS payments"""


def find_pending(
    db: Connection, *, now: float, sends_refunds: bool, refunds_automatically: bool
) -> list[str]:
    """Return what is pending among `tasks`, `payments` and `refunds`, in one statement.

    `sends_refunds` is whether there is a refund key. Tasks and payments read the first row of an
    index; refunds read all that are owed, which are few.
    """
    sql = _ANY
    values: tuple[float, ...] = ()
    if sends_refunds:
        refunds = _REFUNDS.format(automatic=_AUTOMATIC if refunds_automatically else "")
        sql = f"{_ANY}, EXISTS ({refunds}) AS refunds"
        values = (now - _FRESH_S,)
    row = db.execute(sql, values).fetchone()
    names = ("tasks", "payments", "refunds") if sends_refunds else ("tasks", "payments")
    return [name for name in names if row[name]]
