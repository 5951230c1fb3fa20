"""Takes, settles and refunds money, from the proof of payment to the queued task.

Running the task belongs in `gateway.tasks`, and SQL in `gateway.store`.
"""

from typing import cast

import attrs

from gateway.contracts import AuthorizationVerifier, Quote
from gateway.domain import GenerationRequest
from gateway.payments.accept import Accepted
from gateway.payments.claimants import Claimant
from gateway.payments.direct import DirectPayments
from gateway.payments.exposure import Exposure
from gateway.payments.failed_settlements import FailedSettlements
from gateway.payments.method_purchases import MethodPurchases, MethodSettlements
from gateway.payments.methods import PaymentMethods, WayToPay
from gateway.payments.obstacles import Obstacles
from gateway.payments.reconcile import Reconciler
from gateway.payments.refunds import Refunds
from gateway.payments.sent import SentRequest
from gateway.payments.settlement import Settlements
from gateway.payments.x402 import X402Payments


@attrs.define(kw_only=True, slots=False, eq=False, repr=False)
class Payments(X402Payments, DirectPayments, MethodPurchases):
    """All payment flows, over one store and one chain."""

    async def accept(
        self,
        way: WayToPay,
        quote: Quote,
        request: GenerationRequest,
        header: str,
        idempotency_key: str | None = None,
        sent: SentRequest | None = None,
        *,
        is_unknown: bool = False,
    ) -> Accepted:
        """Accept a payment header for one request.

        `way` is the one that `PaymentMethods.choose` returned. `is_unknown` is whether `find` found
        nothing before; a payment method's proof is searched again nevertheless. Raises what
        `accept_x402` and `accept_by_method` raise.
        """
        method = self.methods.method_of(way)
        if method is not None:
            return await self.accept_by_method(
                method, quote, request, header, idempotency_key, sent
            )
        verifier = cast(AuthorizationVerifier, way)
        return await self.accept_x402(
            quote, request, header, idempotency_key, verifier, sent, is_unknown=is_unknown
        )

    async def find(
        self,
        way: WayToPay,
        sent: SentRequest,
        header: str,
        idempotency_key: str | None = None,
        *,
        claimant: Claimant | None = None,
    ) -> Accepted | None:
        """Return the task of a payment header or key on record, or None.

        Raises what `find_x402` and `find_by_method` raise.
        """
        method = self.methods.method_of(way)
        if method is not None:
            return await self.find_by_method(
                method, sent, header, idempotency_key, claimant=claimant
            )
        verifier = cast(AuthorizationVerifier, way)
        return await self.find_x402(sent, header, idempotency_key, verifier, claimant=claimant)
