"""Mutants of batches: judging and recording their payments."""

from typing import Any

import attrs

from gateway import Transfer
from gateway.chain.signer import Signer
from gateway.domain.eip3009 import AUTHORIZATION_USED_TOPIC
from gateway.payments import Reconciler
from gateway.payments.failed_settlements import FailedSettlements
from gateway.store import nonces
from tests.proof.simulation.broken_settling import own_key
from tests.proof.simulation.mutant import ONE_USE, Mutant


def status_alone() -> Mutant:
    original = Reconciler._settle_by

    async def _settle_by(self: Any, payment: Any, receipt: Any) -> bool:
        """Treat a receipt with any settlement as that of every payment."""
        if await original(self, payment, receipt):
            return True
        used = [log for log in receipt.logs if log.topics[0] == AUTHORIZATION_USED_TOPIC]
        if not receipt.succeeded or not used:
            return False
        believed = Transfer(
            tx_hash=receipt.tx_hash,
            log_index=used[0].index + 1,
            sender=payment.payer,
            amount_units=payment.price_units,
            authorization_key=own_key(payment),
        )
        await self._store.settle(payment.id, believed, now=self._now())
        return True

    return Mutant(
        "a batch that succeeded paid for all in it",
        ((Reconciler, "_settle_by", _settle_by),),
        (ONE_USE,),
    )


def broadcast_before_row() -> Mutant:
    original = Signer.send_batch

    async def send_batch(self: Any, batch: Any, gas: int) -> Any:
        calls = {payment.id: call for payment, call in batch}
        count = await self.count_mined()
        nonce = await self._journal.next_nonce(self.address, count)
        early = self._sign_batch(list(calls.values()), gas, nonce, await self.bid())
        await self._chain.send(early.raw)
        return await original(self, batch, gas)

    return Mutant("a batch is broadcast before its row (T2)", ((Signer, "send_batch", send_batch),))


def first_only() -> Mutant:
    original = nonces._insert_payments

    def _insert_payments(db: Any, tx_hash: str, payment_ids: Any) -> None:
        original(db, tx_hash, payment_ids[:1])

    return Mutant(
        "of a batch only the first is written down",
        ((nonces, "_insert_payments", _insert_payments),),
    )


def status_bars() -> Mutant:
    original = FailedSettlements._has_paid

    def _has_paid(self: Any, payment: Any, transaction: Any, receipt: Any) -> bool:
        return original(self, payment, attrs.evolve(transaction, payments=1), receipt)

    return Mutant(
        "who spoils a batch that succeeded is not barred",
        ((FailedSettlements, "_has_paid", _has_paid),),
    )
