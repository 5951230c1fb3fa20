"""What the store promises about payments by methods whose proofs the core cannot read."""

from typing import TYPE_CHECKING, Protocol

import attrs

from gateway.contracts.payment_methods import MethodPayment, MethodProof, Refused, Taken
from gateway.domain import Payment, Task

if TYPE_CHECKING:
    # At run time `store` imports this module.
    from gateway.contracts.store import NewTask


def claim_key(method: str, key: str) -> str:
    """Return the claim of a method's key; no other method, flow or key has the same."""
    return f"{method}:{key}"


@attrs.frozen(kw_only=True)
class OpenMethodPayment:
    """A payment whose outcome only its method knows."""

    payment: Payment
    method: str
    asked: MethodPayment


class MethodRecords(Protocol):
    """The part of the store for payments by methods. Each method is one write or one read.

    In docs/payments.md `reserve` is T1, `begin_settling` T2, and `close` T3 or TR.
    """

    async def reserve(
        self,
        task: "NewTask",
        method: str,
        proof: MethodProof,
        idempotency_hash: str | None,
        *,
        held_file_bytes: int,
    ) -> Task | None:
        """Write down payment `reserved`, its claim and proof, and task `held`.

        Returns None, and writes nothing, if the claim is taken already. If another proof has the
        Idempotency-Key, writes nothing and returns the task of that proof.
        Raises `IdempotencyConflict` if that task is of another request, `ExecutionError` if held
        files fill their cap, and `ValueError` for a value below the price.
        """
        ...

    async def begin_settling(self, payment_id: int, *, now: float) -> bool:
        """Write down payment `settling`, before its method is asked. False where it is closed."""
        ...

    async def close(self, payment_id: int, answer: Taken | Refused, *, now: float) -> bool:
        """Write down a method's answer: the task is `queued`, or `dropped`.

        Returns False where the payment is closed already. Raises `RuntimeError` for a payment that
        was not settling, so that nobody can have been asked.
        """
        ...

    async def is_same_proof(self, method: str, proof: MethodProof) -> bool:
        """Return whether a claim was taken with these very bytes."""
        ...

    async def answer_of(self, payment_id: int) -> str | None:
        """Return what the method answered: its receipt, or why it refused; None before that."""
        ...

    async def open_payments(self) -> list[OpenMethodPayment]:
        """Return the payments whose outcome is not known, oldest first."""
        ...

    async def open_payment(self, payment_id: int) -> OpenMethodPayment | None:
        """Return a payment by a method whose outcome is not known; None for any other payment."""
        ...
