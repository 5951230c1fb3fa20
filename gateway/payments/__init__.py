"""Everything that takes, settles or returns money, from a payment's proof to a queued task.

What happens to a task after that belongs in `gateway.tasks`, and SQL belongs in `gateway.store`.
"""

import attrs

from gateway.payments.accept import Accepted
from gateway.payments.direct import DirectPayments
from gateway.payments.exposure import Exposure
from gateway.payments.failed_settlements import FailedSettlements
from gateway.payments.methods import PaymentMethods
from gateway.payments.obstacles import Obstacles
from gateway.payments.reconcile import Reconciler
from gateway.payments.refunds import Refunds
from gateway.payments.settlement import Settlements
from gateway.payments.x402 import X402Payments

__all__ = [
    "Accepted",
    "Exposure",
    "FailedSettlements",
    "Obstacles",
    "PaymentMethods",
    "Payments",
    "Reconciler",
    "Refunds",
    "Settlements",
]


@attrs.define(kw_only=True, slots=False)
class Payments(X402Payments, DirectPayments):
    """Both flows, over one store and one chain."""
