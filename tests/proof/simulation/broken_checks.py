"""Mutants of the checks that remain since a settlement relies on its purchase's simulation."""

from typing import Any

from gateway.chain.authorization_checks import AuthorizationChecks
from gateway.chain.signer import Signer
from gateway.store import SqliteStore, nonces
from gateway.store import payments as payment_writes
from gateway.store.sql import as_write
from gateway_local_settler import LocalSettler
from tests.proof.simulation.broken_accepting import claim_or_ignore
from tests.proof.simulation.mutant import Mutant, patched


def unsimulated() -> Mutant:
    async def check(self: Any, authorization: Any) -> bool:
        """Believe that the chain would settle it."""
        return True

    return Mutant(
        "neither purchase nor settlement is simulated", ((AuthorizationChecks, "check", check),)
    )


def claim_not_read() -> Mutant:
    def reserve(db: Any, *arguments: Any, **more: Any) -> Any:
        """Reserve without the claims, which the purchase does not read again either."""
        with patched(
            (payment_writes, "is_claimed", lambda _db, key: False),
            (payment_writes, "claim", claim_or_ignore),
        ):
            return payment_writes.reserve(db, *arguments, **more)

    return Mutant(
        "T1 does not read the claim that its purchase read before",
        ((SqliteStore, "reserve", as_write(reserve)),),
    )


def count_alone() -> Mutant:
    original = LocalSettler._take_counts

    def _take_counts(self: Any, payment: Any) -> Any:
        return dict.fromkeys(original(self, payment), 0)

    return Mutant(
        "the remembered count names the nonce, without the journal",
        (
            (LocalSettler, "_take_counts", _take_counts),
            (nonces, "next_nonce", lambda db, address, chain_nonce: chain_nonce),
            (nonces, "check_nonce_free", lambda db, transaction: None),
        ),
    )


def code_unsimulated() -> Mutant:
    async def check(self: Any, authorization: Any, quote: Any) -> None:
        if reading := self._begun.take(authorization):
            self._passed.keep(authorization, reading)

    async def most_nonces(self: Any, payment: Any) -> int:
        return 3

    async def simulate(self: Any, call: Any, fees: Any = None) -> None:
        """Believe it."""

    return Mutant(
        "an account with code is not simulated at real fees",
        (
            (LocalSettler, "check", check),
            (Signer, "simulate", simulate),
            (LocalSettler, "_most_nonces", most_nonces),
        ),
    )
