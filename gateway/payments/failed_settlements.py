"""Finds reverted settlements, and determines their cost and cause.

A revert costs gas and moves no money. It counts towards the hourly limit of burned gas, unless its
cause burns little. If the payer caused it, `exposure` bars the payer from x402 for a day.
"""

import asyncio
import itertools
from collections.abc import Coroutine, Sequence
from typing import Any

import attrs
import structlog

from gateway.chain.block_times import last_block_by
from gateway.chain.smart_wallets import has_code
from gateway.contracts import Chain, Clock, SignedTransaction
from gateway.contracts.store import FailedSettlement
from gateway.domain import Authorization, Block, Payment, Receipt
from gateway.domain.eip3009 import BALANCE_OF, Network, usual_gas, word
from gateway.errors import ChainUnavailable
from gateway.payments.nonce_events import find_transfer, is_spent
from gateway.store import SqlStore

# No endpoint lags for this long. A nonce that still has no receipt was used by an unknown
# transaction. If it has one, most endpoints have dropped that block's state by now, so a revert
# stays unexplained.
_GIVE_UP_S = 600.0
# The payer's code was checked at most this many seconds before signing.
_CHECKED_S = 10.0
_log = structlog.get_logger()


@attrs.frozen(eq=False, repr=False)
class _Mined:
    """The transaction that was mined among those with the same nonce."""

    transaction: SignedTransaction
    receipt: Receipt
    first_sent_at: float = attrs.field(kw_only=True)

    @property
    def is_burned(self) -> bool:
        """Whether it used more gas than the token's own code needs; unknown counts as yes."""
        gas_used = self.receipt.gas_used
        return gas_used is None or gas_used > usual_gas(self.transaction.payments)

    @property
    def fee_wei(self) -> int:
        """Its cost, or the upper bound if the receipt does not contain it."""
        if self.receipt.fee_wei is not None:
            return self.receipt.fee_wei
        return self.transaction.most_wei * self.transaction.payments


@attrs.define(eq=False, slots=False, repr=False)
class FailedSettlements:
    """Judges every mined settlement that may have failed, by its receipt."""

    _store: SqlStore
    _chain: Chain
    _network: Network
    _now: Clock
    give_up_s: float = attrs.field(default=_GIVE_UP_S, kw_only=True)
    # What this round has read: the payments of a batch share its receipt, and the block before it.
    _receipts: dict[str, Receipt] = attrs.field(factory=dict, init=False)
    _blocks_before: dict[float, Block] = attrs.field(factory=dict, init=False)

    async def judge_all(self) -> None:
        """Judge each nonce once. A `ChainUnavailable` skips one nonce until the next call.

        Batches come first: one call tells what a batch cost, which stops the next one.
        """
        self._receipts.clear()
        self._blocks_before.clear()
        batches = await self._store.payers.unjudged_batches()
        for _, same in itertools.groupby(batches, lambda one: (one.signer, one.nonce)):
            versions_of_batch = list(same)
            await self._try(self._judge_batch(versions_of_batch), versions_of_batch)
        unjudged = await self._store.payers.unjudged()
        same_nonce = itertools.groupby(
            unjudged, lambda one: (one[1].signer, one[1].nonce, one[0].id)
        )
        for _, group in same_nonce:
            versions = list(group)
            payment, transactions = versions[0][0], [one for _, one in versions]
            await self._try(self._judge(payment, transactions), transactions)

    async def _try(
        self, judging: Coroutine[Any, Any, None], versions: Sequence[SignedTransaction]
    ) -> None:
        try:
            await judging
        except ChainUnavailable as error:
            tx_hash = versions[-1].tx_hash
            _log.warning("settlement.not_judged", transaction=tx_hash, error=error.message)

    async def _find_mined(self, versions: Sequence[SignedTransaction]) -> _Mined | None:
        """Return the version that was mined, or None; also store its receipt."""
        for transaction in versions:
            receipt = self._receipts.get(transaction.tx_hash)
            if receipt is None:
                receipt = await self._chain.receipt(transaction.tx_hash)
                if receipt is None:
                    continue
                await self._store.note_mined(receipt)
                self._receipts[transaction.tx_hash] = receipt
            return _Mined(transaction, receipt, first_sent_at=versions[0].sent_at)
        return None

    async def _judge(self, payment: Payment, versions: Sequence[SignedTransaction]) -> None:
        """Judge one payment.

        A batch succeeds even if calls in it fail, so its status proves nothing about a payment.
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

        Multicall3 lets single calls fail, so a batch reverts only if a payer's code used up the
        gas. The excess gas of a successful batch is stored with its receipt.
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

        Raises `ChainUnavailable` if a later call may still find the cause.
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
        """Return the cause, by the state at the revert's own block.

        The token checks time and nonce first, then the payer's code, then the balance.
        """
        block = mined.receipt.block
        if block.timestamp >= signed.valid_before:
            # Mined too late, which is not the payer's fault.
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
            # The token's own refusals cost less than this.
            return "unexplained"
        if spent:
            return "spent"
        return "drained" if balance < signed.value_units else "unexplained"

    async def _had_code(self, signed: Authorization, mined: _Mined) -> bool:
        """Whether the payer may have had code for a moment (EIP-7702).

        That raises the account's nonce; only signing payments does not.
        """
        checked_at = mined.first_sent_at - _CHECKED_S
        before = self._blocks_before.get(checked_at)
        if before is None:
            number = await last_block_by(self._chain, checked_at)
            before = self._blocks_before[checked_at] = await self._chain.block_at(number)
        at_first, at_last = await asyncio.gather(
            self._chain.transaction_count(signed.sender, at=before),
            self._chain.transaction_count(signed.sender, at=mined.receipt.block),
        )
        return at_last > at_first
