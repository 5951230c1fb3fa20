"""What makes two requests the same one: fingerprints, keys, and the task a repeat leads to."""

import hashlib
import uuid
from collections.abc import Mapping

import attrs

from gateway.contracts import NewTask, Proof
from gateway.domain import Endpoint, GenerationRequest, Task
from gateway.errors import IdempotencyConflict, PaymentRequired

SPENT = "invalid_exact_evm_nonce_already_used"


@attrs.frozen(kw_only=True)
class Accepted:
    """A paid request: its task, and headers for the 200."""

    task: Task
    headers: Mapping[str, str] = attrs.field(factory=dict)


def new_task(
    endpoint: Endpoint,
    request: GenerationRequest,
    *,
    price_units: int,
    fingerprint: str,
    now: float,
) -> NewTask:
    """Return a task that is not written down yet."""
    return NewTask(
        id=str(uuid.uuid4()),
        endpoint=endpoint,
        request=request,
        request_hash=fingerprint,
        price_units=price_units,
        created_at=now,
    )


def repeated(task: Task, fingerprint: str) -> Task:
    """Return the task of an Idempotency-Key; another request under it is a conflict."""
    if task.payment.request_hash != fingerprint:
        raise IdempotencyConflict("This Idempotency-Key was used with another request.")
    return task


def claimed(task: Task, proof: Proof, new: NewTask) -> Task:
    """Return the task a claim leads to, where it is of the same authorization and request.

    Raises `PaymentRequired` also where only the public nonce is known, without the signature.
    """
    same = (task.payment.authorization, task.payment.request_hash)
    if same != (proof.authorization, new.request_hash):
        raise PaymentRequired(SPENT)
    return task


def payer_key_hash(payer: str, idempotency_key: str | None) -> str | None:
    """Return what an x402 payment's key is stored as: everybody's keys are their own.

    No UTF-8 holds the byte between: no key of the direct flow has the same hash.
    """
    if idempotency_key is None:
        return None
    return hashlib.sha256(payer.lower().encode() + b"\xff" + idempotency_key.encode()).hexdigest()


def direct_key_hash(idempotency_key: str | None) -> str | None:
    """Return what a direct payment's key is stored as."""
    return hashlib.sha256(idempotency_key.encode()).hexdigest() if idempotency_key else None


def direct_fingerprint(endpoint: Endpoint, request: GenerationRequest, tx_hash: str) -> str:
    """Return what makes two direct requests the same: also the transaction they name."""
    facts = request.fingerprint(endpoint.slug) + tx_hash
    return hashlib.sha256(facts.encode()).hexdigest()
