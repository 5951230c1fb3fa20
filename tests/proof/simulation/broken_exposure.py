"""Mutants of the limits per payer: bars, limits of T1, nonces of accounts with code."""

from typing import Any

from gateway.payments.exposure import Exposure
from gateway.payments.failed_settlements import FailedSettlements
from gateway.store import nonces, payers
from gateway.store import payments as payment_writes
from gateway_local_settler import LocalSettler
from tests.proof.simulation.mutant import Mutant


def nobody_barred() -> Mutant:
    async def check_not_barred(self: Any, payer: str) -> None:
        """Bar no payer."""

    def never(*_: Any) -> bool:
        return False

    return Mutant(
        "a failed settlement bars no payer",
        ((Exposure, "check_not_barred", check_not_barred), (payers, "_is_barred", never)),
    )


def paid_unjudged() -> Mutant:
    def skip_known(db: Any) -> None:
        """Check no transaction of a payment that has been paid."""
        db.execute(
            """UPDATE sent_transactions SET judged = 1
               WHERE mined = 1 AND judged = 0 AND payment_id IN (SELECT id FROM payments
                   WHERE state NOT IN ('reserved', 'settling', 'released'))"""
        )

    return Mutant(
        "what a paid payment's own transaction burned is not judged",
        ((payers, "skip_known", skip_known),),
    )


def batch_unjudged() -> Mutant:
    async def _judge_batch(self: Any, versions: Any) -> None:
        await self._store.payers.judge(versions[-1], None)

    return Mutant(
        "a batch that burned all its gas is not judged",
        ((FailedSettlements, "_judge_batch", _judge_batch),),
    )


def excess_free() -> Mutant:
    return Mutant(
        "what a batch burned that succeeded is not judged",
        ((nonces, "_note_excess", lambda db, receipt: None),),
    )


def unlimited() -> Mutant:
    def check_limits(*_: Any) -> None:
        """Let a payer open any number of payments."""

    return Mutant(
        "T1 does not look at what a payer has open",
        ((payment_writes, "check_limits", check_limits),),
    )


def many_nonces() -> Mutant:
    async def _most_nonces(self: Any, payment: Any) -> int:
        return 3

    return Mutant(
        "an account with code gets three nonces",
        ((LocalSettler, "_most_nonces", _most_nonces),),
    )
