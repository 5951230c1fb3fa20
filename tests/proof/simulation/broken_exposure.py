"""Mutants of what a payer may cost: bars, limits of T1, nonces of accounts with code."""

from typing import Any

from gateway.payments.exposure import Exposure
from gateway.store import payers
from gateway.store import payments as payment_writes
from gateway_local_settler import LocalSettler
from tests.proof.simulation.mutant import Mutant


def nobody_barred() -> Mutant:
    async def check_not_barred(self: Any, payer: str) -> None:
        """Let every payer in."""

    def never(*_: Any) -> bool:
        return False

    return Mutant(
        "a failed settlement bars no payer",
        ((Exposure, "check_not_barred", check_not_barred), (payers, "_is_barred", never)),
    )


def unlimited() -> Mutant:
    def check_limits(*_: Any) -> None:
        """Let a payer open as many payments as it likes."""

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
