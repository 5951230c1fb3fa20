"""Mutants of the checks that remain since a settlement relies on its purchase's simulation."""

from typing import Any

from gateway.chain.authorization_checks import AuthorizationChecks
from gateway.chain.smart_wallets import is_signed_by_key
from gateway.domain.eip3009 import BASE
from gateway.store import SqliteStore
from gateway.store import payments as payment_writes
from gateway.store.sql import as_write
from gateway_local_settler import settler
from gateway_local_settler.settler import LocalSettler
from tests.proof.simulation.broken_accepting import claim_or_ignore, find_nothing
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
            (payment_writes, "find_claims", find_nothing),
            (payment_writes, "claim", claim_or_ignore),
        ):
            return payment_writes.reserve(db, *arguments, **more)

    return Mutant(
        "T1 does not read the claim that its purchase read before",
        ((SqliteStore, "reserve", as_write(reserve)),),
    )


def code_not_read() -> Mutant:
    async def has_code(authorization: Any, chain: Any, **more: Any) -> bool:
        """Believe that an account whose key signed has no code."""
        by_key = is_signed_by_key(authorization, BASE)
        return False if by_key else await original(authorization, chain, **more)

    original = settler.has_code
    return Mutant("an account whose key signed counts as plain", ((settler, "has_code", has_code),))


def code_unsimulated() -> Mutant:
    async def check(self: Any, authorization: Any, quote: Any) -> None:
        if reading := self._begun.take(authorization):
            self._passed.keep(authorization, reading)

    return Mutant(
        "an account with code relies on a simulation without fees",
        ((LocalSettler, "check", check),),
    )
