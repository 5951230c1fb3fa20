"""Mutants of the checks that remain since a settlement relies on its purchase's simulation."""

from typing import Any

from gateway.chain import shared_simulations
from gateway.chain.authorization_checks import AuthorizationChecks
from gateway.chain.shared_simulations import IS_PLAIN, SUCCEEDS, SharedSimulations
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


def shared_code_ignored() -> Mutant:
    def read_passed(transfers: Any, flags: bytes) -> frozenset[Any]:
        """Accept every transfer that succeeds, whatever its payer's account is."""
        return frozenset(one for one, flag in zip(transfers, flags, strict=True) if flag & SUCCEEDS)

    return Mutant(
        "an account with code passes a shared simulation",
        ((shared_simulations, "_read_passed", read_passed),),
    )


def shared_failure_ignored() -> Mutant:
    def read_passed(transfers: Any, flags: bytes) -> frozenset[Any]:
        """Accept every transfer of a plain account, whatever comes of it."""
        return frozenset(one for one, flag in zip(transfers, flags, strict=True) if flag & IS_PLAIN)

    return Mutant(
        "a transfer that fails passes a shared simulation",
        ((shared_simulations, "_read_passed", read_passed),),
    )


def shared_answer_of_another() -> Mutant:
    def read_passed(transfers: Any, flags: bytes) -> frozenset[Any]:
        return original(transfers, flags[1:] + flags[:1])

    original = shared_simulations._read_passed
    return Mutant(
        "each transfer of a shared simulation gets the answer of the next one",
        ((shared_simulations, "_read_passed", read_passed),),
    )


def shared_answer_kept() -> Mutant:
    """A payer that passed once passes for ever, as one that has no code did for two minutes."""

    async def simulate(self: Any, transfer: Any) -> bool:
        passed = vars(self).setdefault("_passed", set())
        if transfer.sender in passed:
            return True
        has_passed = await original(self, transfer)
        passed.update({transfer.sender} if has_passed else ())
        return has_passed

    original = SharedSimulations.simulate
    return Mutant(
        "a payer's earlier shared simulation counts for the next sale",
        ((SharedSimulations, "simulate", simulate),),
    )
