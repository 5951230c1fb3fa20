"""The refund promise of a quote.

An automatic refund is promised only while the refund key's balance and the daily cap cover it in
addition to all refunds owed.
"""

import attrs
import structlog

from gateway.concurrency.periodic import Periodic
from gateway.contracts import PluginContext
from gateway.domain import Payment, PaymentState, Refund, usdc
from gateway.domain.eip3009 import BALANCE_OF, word
from gateway.domain.refund_promise import RefundPromise
from gateway.payments.refunds import Refunds
from gateway.store import SqlStore

_EVERY_S = 30.0
# While the chain does not answer.
_AGAIN_S = 5.0
_log = structlog.get_logger()


class RefundPromises:
    """Promises refunds by the last check of the refund key's balance."""

    def __init__(self, context: PluginContext, store: SqlStore, refunds: Refunds | None) -> None:
        """`refunds` is None without a refund key; another node may have one."""
        self._settings = context.settings
        self._chain = context.chain
        self._now = context.now
        self._ledger = store.refunds
        self._refunds = refunds
        # The largest price with an automatic refund, in units of 10⁻⁶ USDC.
        self.room_units = 0
        self._periodic = Periodic("refund-promises", self.refresh, _EVERY_S)
        url, contact = f"{self._settings.base_url}/llms.txt", self._settings.contact_email
        is_reviewed = refunds is not None or store.nodes.has_others
        self._automatic = RefundPromise(on_failure="automatic", policy_url=url, contact=contact)
        self._otherwise = attrs.evolve(
            self._automatic, on_failure="review" if is_reviewed else "none"
        )

    def of(self, price_units: int) -> RefundPromise:
        """Return the promise for this price."""
        return self._automatic if 0 < price_units <= self.room_units else self._otherwise

    def describe(self, payment: Payment, refund: Refund) -> str:
        """Return the state of a refund in words for its buyer."""
        is_automatic = self._refunds is not None and self._settings.refunds_automatically
        promise = self._automatic if is_automatic and payment.payer_proven else self._otherwise
        return promise.describe_refund(refund)

    def start(self) -> None:
        """Check now, then every half minute, and sooner while the chain does not answer."""
        self._periodic.start()

    async def stop(self) -> None:
        """Stop the checks."""
        await self._periodic.stop()

    async def refresh(self) -> None:
        """Read the key's balance and the refunds due. Raises `ChainUnavailable`."""
        if self._refunds is None or not self._settings.refunds_automatically:
            return
        room_units = 0
        self._periodic.every_s = _AGAIN_S
        try:
            room_units = await self._find_room(self._refunds)
            self._periodic.every_s = _EVERY_S
        finally:
            # Zero on an error: no refund can be sent while the chain is unavailable.
            if bool(room_units) != bool(self.room_units):
                _log.info("refunds.promise_changed", units=room_units)
            self.room_units = room_units

    async def _find_room(self, refunds: Refunds) -> int:
        if not await refunds.can_send():
            return 0
        holds = await self._chain.call_uint(BALANCE_OF + word(refunds.address))
        due = await self._sum(PaymentState.REFUND_DUE)
        refunding = await self._sum(PaymentState.REFUNDING)
        cap = usdc(self._settings.refund_daily_cap)
        spent = await self._ledger.sent_automatically(now=self._now())
        return max(0, min(holds - due - refunding, cap - spent - due))

    async def _sum(self, state: PaymentState) -> int:
        return sum(case.amount_units for case in await self._ledger.cases(state))
