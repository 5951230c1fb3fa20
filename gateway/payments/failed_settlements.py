"""Finds our settlements that reverted in a block, their cost and their cause.

A revert costs gas and moves no money. It counts towards the hour's limit of burned gas unless its
cause is one that burns little. If its block shows that the payer caused it, `exposure` bars the
payer from x402 for a day.
"""

import asyncio
import itertools
from collections.abc import Coroutine, Sequence
from typing import Any

import attrs
import structlog

from gateway.chain.block_times import last_block_before
from gateway.chain.smart_wallets import has_code
from gateway.contracts import Chain, Clock, SignedTransaction
from gateway.contracts.store import FailedSettlement
from gateway.domain import Authorization, Payment, Receipt
from gateway.domain.eip3009 import BALANCE_OF, Network, usual_gas, word
from gateway.errors import ChainUnavailable
from gateway.payments.reconcile import find_transfer, is_spent
from gateway.store import SqlStore

# After this many seconds no endpoint lags behind. A nonce without a receipt was then used up by a
# transaction that we do not know. If there is a receipt, most endpoints have dropped the state at
# its block by then, so the revert stays unexplained.
_GIVE_UP_S = 600.0
# A payer's code was checked at most this many seconds before the transaction was signed.
_CHECKED_S = 10.0
_log = structlog.get_logger()


@attrs.frozen
class _Mined:
    """The version of a nonce that was mined."""

    transaction: SignedTransaction
    receipt: Receipt
    first_sent_at: float = attrs.field(kw_only=True)

    @property
    def is_burned(self) -> bool:
        """Whether more gas was used than the token's own code uses; unknown counts as used."""
        gas_used = self.receipt.gas_used
        return gas_used is None or gas_used > usual_gas(self.transaction.payments)

    @property
    def fee_wei(self) -> int:
        """Its cost; the upper bound if the receipt does not contain it."""
        if self.receipt.fee_wei is not None:
            return self.receipt.fee_wei
        return self.transaction.most_wei * self.transaction.payments


class FailedSettlements:
    """Reads the receipt of every mined settlement that may have failed."""

    def __init__(
        self,
        store: SqlStore,
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
        """Judge each nonce once. If the chain is unavailable for one nonce, go on with the next."""
        unjudged = await self._store.payers.unjudged()
        same_nonce = itertools.groupby(
            unjudged, lambda one: (one[1].signer, one[1].nonce, one[0].id)
        )
        for _, group in same_nonce:
            versions = list(group)
            payment, transactions = versions[0][0], [one for _, one in versions]
            await self._try(self._judge(payment, transactions), transactions)
        batches = await self._store.payers.unjudged_batches()
        for _, same in itertools.groupby(batches, lambda one: (one.signer, one.nonce)):
            versions_of_batch = list(same)
            await self._try(self._judge_batch(versions_of_batch), versions_of_batch)

    async def _try(
        self, judging: Coroutine[Any, Any, None], versions: Sequence[SignedTransaction]
    ) -> None:
        try:
            await judging
        except ChainUnavailable as error:
            tx_hash = versions[-1].tx_hash
            _log.warning("settlement.not_judged", transaction=tx_hash, error=error.message)

    async def _find_mined(self, versions: Sequence[SignedTransaction]) -> _Mined | None:
        """Return the mined version of a nonce, or None, and store its receipt."""
        for transaction in versions:
            receipt = await self._chain.receipt(transaction.tx_hash)
            if receipt is not None:
                await self._store.note_mined(receipt)
                return _Mined(transaction, receipt, first_sent_at=versions[0].sent_at)
        return None

    async def _judge(self, payment: Payment, versions: Sequence[SignedTransaction]) -> None:
        """Judge one payment of a nonce.

        A batch succeeds even if calls in it failed, so its status alone proves nothing about a
        payment.
        """
        newest, mined = versions[-1], await self._find_mined(versions)
        if mined is None:
            if self._is_long_ago(newest):
                await self._store.payers.judge(newest, None, payment.id)
            return
        failure = None
        if not self._has_paid(payment, mined.transaction, mined.receipt):
            failure = await self._explain_failure(payment, mined)
            _log.warning(
                "settlement.reverted",
                payment=payment.id,
                payer=payment.payer,
                transaction=mined.receipt.tx_hash,
                cause=failure.failure,
            )
        await self._store.payers.judge(mined.transaction, failure, payment.id)

    async def _judge_batch(self, versions: Sequence[SignedTransaction]) -> None:
        """Judge the cost of a whole batch.

        Multicall3 lets calls fail, so the batch reverts only if a payer's code used up the gas.
        Excess gas of a batch that succeeded is stored with its receipt.
        """
        newest, mined = versions[-1], await self._find_mined(versions)
        if mined is None:
            if self._is_long_ago(newest):
                await self._store.payers.judge(newest, None)
        elif mined.receipt.succeeded:
            await self._store.payers.judge(mined.transaction, None)
        else:
            fee_wei = mined.fee_wei
            _log.warning("settlement.batch_burned", transaction=newest.tx_hash, fee_wei=fee_wei)
            failure = FailedSettlement(
                payer="",
                tx_hash=mined.receipt.tx_hash,
                at=self._now(),
                failure="burned",
                fee_wei=fee_wei,
            )
            await self._store.payers.judge(mined.transaction, failure)

    def _has_paid(self, payment: Payment, transaction: SignedTransaction, receipt: Receipt) -> bool:
        if transaction.payments == 1 or payment.authorization is None:
            return receipt.succeeded
        return find_transfer(payment.authorization, receipt, self._network) is not None

    def _is_long_ago(self, transaction: SignedTransaction) -> bool:
        return self._now() - transaction.sent_at > self.give_up_s

    async def _explain_failure(self, payment: Payment, mined: _Mined) -> FailedSettlement:
        """Return the failure with its cause and the payment's share of its cost.

        Raises `ChainUnavailable` if the cause cannot be read now but perhaps later.
        """
        if payment.authorization is None:
            raise ValueError("a direct payment is not settled by us")
        try:
            cause = await self._find_cause(payment.authorization, mined)
        except ChainUnavailable:
            if not self._is_long_ago(mined.transaction):
                raise
            cause = "unexplained"
        return FailedSettlement(
            payer=payment.payer,
            tx_hash=mined.receipt.tx_hash,
            at=self._now(),
            failure=cause,
            fee_wei=mined.fee_wei // mined.transaction.payments,
        )

    async def _find_cause(self, signed: Authorization, mined: _Mined) -> str:
        """Return the cause that the state at the revert's own block shows.

        The token checks time and nonce first, then the payer's code, then the balance.
        """
        block = mined.receipt.block
        if block.timestamp >= signed.valid_before:
            # The transaction was mined too late, and the payer did not cause that.
            return "late"
        balance_of = BALANCE_OF + word(signed.sender)
        code, spent, balance = await asyncio.gather(
            has_code(signed, self._chain, at=block),
            is_spent(self._chain, signed, block),
            self._chain.call_uint(balance_of, at=block),
        )
        if spent and not mined.is_burned:
            return "spent"
        if code or (mined.is_burned and await self._had_code(signed, mined)):
            return "wallet"
        if mined.is_burned and mined.transaction.payments == 1:
            # A refusal by the token costs less, whatever is true by the end of the block.
            return "unexplained"
        if spent:
            return "spent"
        return "drained" if balance < signed.value_units else "unexplained"

    async def _had_code(self, signed: Authorization, mined: _Mined) -> bool:
        """Whether the payer may have had code for a moment: that raises its nonce (EIP-7702).

        An account that only signs payments sends no transaction, so its nonce stays.
        """
        before = await last_block_before(self._chain, mined.first_sent_at - _CHECKED_S)
        at_first, at_last = await asyncio.gather(
            self._chain.transaction_count(signed.sender, at=await self._chain.block_at(before)),
            self._chain.transaction_count(signed.sender, at=mined.receipt.block),
        )
        return at_last > at_first
