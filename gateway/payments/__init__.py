"""Money: how a payment is accepted, settled and, where its outcome is unknown, closed by facts."""

from gateway.payments.accept import Payments
from gateway.payments.exposure import Exposure
from gateway.payments.failed_settlements import FailedSettlements
from gateway.payments.idempotency import Accepted
from gateway.payments.obstacles import Obstacles
from gateway.payments.reconcile import Reconciler
from gateway.payments.refunds import Refunds
from gateway.payments.settlement import Settlements

__all__ = [
    "Accepted",
    "Exposure",
    "FailedSettlements",
    "Obstacles",
    "Payments",
    "Reconciler",
    "Refunds",
    "Settlements",
]
