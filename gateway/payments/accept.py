"""Accepts payments: from a proof to a task, in the order of checks that keeps money safe.

X402: known authorization → can serve → terms → chain → T1 → settlement → the task.
Direct: known key → can serve → transaction on-chain → T1' → the task.
"""

import asyncio
import hashlib
import uuid
from collections.abc import Callable, Mapping

import attrs

from gateway.contracts import (
    AuthorizationVerifier,
    Chain,
    Clock,
    NewTask,
    Proof,
    Quote,
    Store,
    TransferVerifier,
)
from gateway.domain import Endpoint, GenerationRequest, PaymentState, Task
from gateway.errors import IdempotencyConflict, PaymentRequired, TxAlreadyUsed
from gateway.payments.floor import floor_block
from gateway.payments.settlement import Settlements
from gateway.usdc import transaction_key

_OUTCOME_S = 20.0  # an unknown outcome is answered after this long, with the task held
_UNSPENT_MARGIN = 5_000  # blocks (under 3 h) an endpoint may lag behind when it says "unspent"
_SPENT_MARGIN = 43_200  # blocks (24 h) to search back for who spent a nonce before us
_SPENT = "invalid_exact_evm_nonce_already_used"


@attrs.frozen(kw_only=True)
class Accepted:
    """A paid request: its task, and headers for the 200."""

    task: Task
    headers: Mapping[str, str] = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class Payments:
    """Both flows, up to the point where a task waits in the queue."""

    store: Store
    chain: Chain
    authorizations: AuthorizationVerifier
    transfers: TransferVerifier
    settlements: Settlements
    on_queued: Callable[[], None]  # a task waits for a lane
    check_serving: Callable[[], None]  # raises ExecutionError where nothing may be sold now
    now: Clock
    born_at: float  # when the database was made

    async def accept_x402(self, quote: Quote, request: GenerationRequest, header: str) -> Accepted:
        """Take a signed authorization; the same one with the same request gives the same task.

        Raises `PaymentRequired` with the standard reason, `ExecutionError` where settling
        cannot work now. An unknown outcome is no error: the task is held until the chain tells.
        """
        try:
            proof = self.authorizations.read(header)
        except PaymentRequired:
            await self._check_can_settle()
            raise
        signed = proof.authorization
        key = quote.network.authorization_key(signed.sender, signed.nonce)
        # Before price and window: a client that lost its 200 may come back late.
        task = await self.store.find_claim(key)
        if task is None:
            await self._check_can_settle()
            task = await self._reserve(quote, request, proof, key)
        fingerprint = request.fingerprint(quote.endpoint.slug)
        is_same = (task.payment.authorization, task.payment.request_hash) == (signed, fingerprint)
        if not is_same:  # also where only the public nonce is known, without the signature
            raise PaymentRequired(_SPENT)
        task = await self._outcome(task)
        headers = self.authorizations.receipt_headers(proof, task.payment)
        return Accepted(task=task, headers=headers)

    async def _check_can_settle(self) -> None:
        self.check_serving()
        await self.settlements.check_ready()

    async def _reserve(
        self, quote: Quote, request: GenerationRequest, proof: Proof, key: str
    ) -> Task:
        """Check, then T1. Whoever claims first has the task; the other is given it as well."""
        signed = proof.authorization
        self.authorizations.check_terms(proof, quote, self.now())
        is_unspent, head = await asyncio.gather(
            self.authorizations.check_chain(signed), self.chain.head()
        )
        if is_unspent:
            await self.settlements.check(signed, quote)
        margin = _UNSPENT_MARGIN if is_unspent else _SPENT_MARGIN
        task = self._new_task(quote.endpoint, request, quote.price_units)
        reserved = await self.store.reserve(task, signed, key, max(head.number - margin, 0))
        claimed = reserved or await self.store.find_claim(key)
        if claimed is None:
            raise RuntimeError("a claim cannot vanish")
        return claimed

    async def _outcome(self, task: Task) -> Task:
        """Wait for a payment that is on its way; refuse one proven not to have happened."""
        if task.payment.state in (PaymentState.RESERVED, PaymentState.SETTLING):
            await self.settlements.drive(task.payment, wait_s=_OUTCOME_S)
            task = await self.store.task(task.id) or task
        if task.payment.state is PaymentState.RELEASED:
            raise PaymentRequired(_SPENT)
        return task

    async def accept_direct(
        self,
        endpoint: Endpoint,
        request: GenerationRequest,
        tx_hash: str,
        idempotency_key: str | None,
    ) -> Accepted:
        """Take a mined transfer; its transaction pays once, unless an Idempotency-Key repeats.

        Raises the `PaymentError`s of spec §7.2, `IdempotencyConflict`, `ChainUnavailable`.
        """
        key_hash = hashlib.sha256(idempotency_key.encode()).hexdigest() if idempotency_key else None
        if key_hash is not None and (known := await self.store.find_idempotent(key_hash)):
            if known.payment.request_hash != direct_fingerprint(endpoint, request, tx_hash):
                raise IdempotencyConflict("This Idempotency-Key was used with another request.")
            return Accepted(task=known)
        self.check_serving()
        if await self.store.find_claim(transaction_key(tx_hash)):
            raise TxAlreadyUsed("This transaction already paid for a generation.")
        transfers = await self.transfers.find_transfers(
            tx_hash, floor_block=await self.floor_block(), now=self.now()
        )
        new = attrs.evolve(
            self._new_task(endpoint, request, endpoint.price_units),
            request_hash=direct_fingerprint(endpoint, request, tx_hash),
        )
        task = await self.store.accept_direct(new, tx_hash, transfers, key_hash)
        self.on_queued()
        return Accepted(task=task)

    async def floor_block(self) -> int:
        """Return the block after which transfers count."""
        return await floor_block(self.store, self.chain, self.born_at)

    def _new_task(
        self, endpoint: Endpoint, request: GenerationRequest, price_units: int
    ) -> NewTask:
        return NewTask(
            id=str(uuid.uuid4()),
            endpoint=endpoint,
            request=request,
            request_hash=request.fingerprint(endpoint.slug),
            price_units=price_units,
            created_at=self.now(),
        )


def direct_fingerprint(endpoint: Endpoint, request: GenerationRequest, tx_hash: str) -> str:
    """Return what makes two direct requests the same: also the transaction they name."""
    facts = request.fingerprint(endpoint.slug) + tx_hash
    return hashlib.sha256(facts.encode()).hexdigest()
