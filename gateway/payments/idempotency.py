"""Decides whether two requests are the same: fingerprints, keys, and the checks of a repeat."""

import hashlib

from gateway.chain.authorization_checks import SPENT
from gateway.contracts import NewTask, Proof
from gateway.domain import Endpoint, GenerationRequest, Task
from gateway.errors import IdempotencyConflict, PaymentRequired, ValidationError


def require_same_request(task: Task, fingerprint: str) -> Task:
    """Return the task of an Idempotency-Key.

    Raises `IdempotencyConflict` if the key was used with another request.
    """
    if task.payment.request_hash != fingerprint:
        raise IdempotencyConflict("This Idempotency-Key was used with another request.")
    return task


def require_same_payment(task: Task, proof: Proof, new: NewTask) -> Task:
    """Return the task of an `auth:` claim.

    Raises `PaymentRequired` if the claim belongs to another request or another authorization.
    The nonce is public, so the signature must be the same too.
    """
    same = (task.payment.authorization, task.payment.request_hash)
    if same != (proof.authorization, new.request_hash):
        raise PaymentRequired(SPENT)
    return task


def choose_key(sent: str | None, signed: str | None) -> str | None:
    """Return the Idempotency-Key of a purchase: the request's, or the one in its payment header.

    Raises `ValidationError` if there are two that differ.
    """
    if sent is not None and signed is not None and sent != signed:
        raise ValidationError(
            "Idempotency-Key and the payment's identifier differ. Send one of them, or the same "
            "value in both."
        )
    return signed if sent is None else sent


def payer_key_hash(payer: str, idempotency_key: str | None) -> str | None:
    """Return the hash under which the store keeps an x402 payer's Idempotency-Key.

    The payer is part of the hash, so two payers may use the same key. The byte 0xFF in between
    never occurs in UTF-8, and the direct flow has 0xFE there, so no two purchases share a hash.
    """
    if idempotency_key is None:
        return None
    return hashlib.sha256(payer.lower().encode() + b"\xff" + idempotency_key.encode()).hexdigest()


def direct_fingerprint(endpoint: Endpoint, request: GenerationRequest, tx_hash: str) -> str:
    """Return the SHA-256 (hex) of a direct request; the transaction is part of the request."""
    facts = request.fingerprint(endpoint.slug) + tx_hash
    return hashlib.sha256(facts.encode()).hexdigest()
