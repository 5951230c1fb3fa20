"""Finds settlements of ours that reverted in a block, and whether the payer caused the revert.

A revert costs gas and moves no money. If the facts at its block show that the payer caused it,
`exposure` bars the payer from x402 for a day.
"""

import asyncio
import itertools

import structlog

from gateway.chain.smart_wallets import has_code
from gateway.contracts import Chain, Clock, SignedTransaction, Store
from gateway.contracts.payers import FailedSettlement
from gateway.domain import Authorization, Payment, Receipt
from gateway.domain.eip3009 import BALANCE_OF, Network, word
from gateway.errors import ChainUnavailable
from gateway.payments.authorizations import find_transfer, is_spent

# After this many seconds no endpoint lags behind. A nonce without a receipt was then used up by a
# transaction that we do not know. If there is a receipt, most endpoints have dropped the state at
# its block by then, so the revert stays unexplained.
_GIVE_UP_S = 600.0
_log = structlog.get_logger()


class FailedSettlements:
    """Reads the receipt of every mined settlement whose payment is not settled."""

    def __init__(
        self,
        store: Store,
        chain: Chain,
        network: Network,
        now: Clock,
        *,
        give_up_s: float = _GIVE_UP_S,
    ) -> None:
        self._store = store
        self._network = network
        self._chain = chain
        self._now = now
        self.give_up_s = give_up_s

    async def look(self) -> None:
        """Judge each nonce once. If the chain is silent about one nonce, go on with the next."""
        unjudged = await self._store.payers.unjudged()
        same_nonce = itertools.groupby(
            unjudged, lambda one: (one[1].signer, one[1].nonce, one[0].id)
        )
        for _, group in same_nonce:
            versions = list(group)
            try:
                await self._judge(versions)
            except ChainUnavailable as error:
                payment, _ = versions[0]
                _log.warning("settlement.not_judged", payment=payment.id, error=error.message)

    async def _judge(self, versions: list[tuple[Payment, SignedTransaction]]) -> None:
        """Look for the receipt of the version of a nonce that was mined: one at most.

        All are of one payment. A batch succeeds although calls in it failed, so its status alone
        says nothing about a payment.
        """
        for payment, transaction in versions:
            receipt = await self._chain.receipt(transaction.tx_hash)
            if receipt is None:
                continue
            failure = None
            await self._store.note_mined(receipt)
            if not self._has_paid(payment, transaction, receipt):
                failure = await self._explain_failure(payment, transaction, receipt)
                _log.warning(
                    "settlement.reverted",
                    payment=payment.id,
                    payer=payment.payer,
                    transaction=transaction.tx_hash,
                    cause=failure.failure,
                )
            await self._store.payers.judge(transaction, failure, payment.id)
            return
        payment, newest = versions[-1]
        if self._is_long_ago(newest):
            await self._store.payers.judge(newest, None, payment.id)

    def _has_paid(self, payment: Payment, transaction: SignedTransaction, receipt: Receipt) -> bool:
        if transaction.payments == 1 or payment.authorization is None:
            return receipt.succeeded
        return find_transfer(payment.authorization, receipt, self._network) is not None

    def _is_long_ago(self, transaction: SignedTransaction) -> bool:
        return self._now() - transaction.sent_at > self.give_up_s

    async def _explain_failure(
        self, payment: Payment, transaction: SignedTransaction, receipt: Receipt
    ) -> FailedSettlement:
        """Return the failure with its cause and its cost.

        Raises `ChainUnavailable` if the cause cannot be read now but perhaps later.
        """
        if payment.authorization is None:
            raise ValueError("a direct payment is not settled by us")
        try:
            cause = await self._find_cause(payment.authorization, receipt)
        except ChainUnavailable:
            if not self._is_long_ago(transaction):
                raise
            cause = "unexplained"
        return FailedSettlement(
            payer=payment.payer,
            tx_hash=transaction.tx_hash,
            at=self._now(),
            failure=cause,
            fee_wei=_fee_of(transaction, receipt, cause),
        )

    async def _find_cause(self, signed: Authorization, receipt: Receipt) -> str:
        """Return what the facts at the revert's own block show."""
        block = receipt.block
        if block.timestamp >= signed.valid_before:
            # The transaction was mined too late, and the payer did not cause that.
            return "unexplained"
        balance_of = BALANCE_OF + word(signed.sender)
        code, spent, balance = await asyncio.gather(
            has_code(signed, self._chain),
            is_spent(self._chain, signed, block),
            self._chain.call_uint(balance_of, at=block),
        )
        if code:
            return "wallet"
        if spent:
            return "spent"
        return "drained" if balance < signed.value_units else "unexplained"


def _fee_of(transaction: SignedTransaction, receipt: Receipt, cause: str) -> int:
    """Return what a payment's failure cost, in wei: its share of a batch's fee.

    An account with code answers for the whole fee, because its code can use up all the gas.
    """
    fee_wei = receipt.fee_wei
    if fee_wei is None:
        fee_wei = transaction.most_wei * transaction.payments
    return fee_wei if cause == "wallet" else fee_wei // transaction.payments
