"""Accepts payments of the direct flow: the buyer submits the hash of a mined USDC transfer.

Keep the order of the checks, money depends on it: the `tx:` claim (a retry with its Idempotency-Key
gets its task) → endpoint → wallet → transfers of the mined transaction → the payer's signature, if
any → `accept_direct`.
"""

import hashlib
from collections.abc import Callable, Sequence

import attrs

from gateway.contracts import NewTask, Quote, TransferVerifier
from gateway.domain import Endpoint, Flow, GenerationRequest, Task, Transfer
from gateway.payments.accept import (
    Acceptance,
    Accepted,
    bind_new_task,
    new_task,
    reached_price,
)
from gateway.payments.payer_proof import PayerProof, signed_transfers


@attrs.define(kw_only=True, slots=False)
class DirectPayments(Acceptance):
    """The direct flow, up to the queued task."""

    transfers: TransferVerifier
    # Wakes a worker for the queued task.
    on_queued: Callable[[], None]

    async def accept_direct(
        self,
        quote: Quote,
        request: GenerationRequest,
        tx_hash: str,
        idempotency_key: str | None,
        proof: PayerProof | None = None,
    ) -> Accepted:
        """Accept a mined transfer as payment for one request.

        A transaction pays for one task. A retry with the same request, Idempotency-Key and
        transaction returns that task. With a proof, only its signer's transfers count.

        Raises the `PaymentError`s of spec §7.2, `IdempotencyConflict`, `ExecutionError` and
        `ChainUnavailable`.
        """
        with self._counted(quote.endpoint.slug, Flow.DIRECT):
            return await self._accept_transfer(quote, request, tx_hash, idempotency_key, proof)

    async def _accept_transfer(
        self,
        quote: Quote,
        request: GenerationRequest,
        tx_hash: str,
        idempotency_key: str | None,
        proof: PayerProof | None,
    ) -> Accepted:
        endpoint = quote.endpoint
        fingerprint = _fingerprint(endpoint, request, tx_hash)
        if known := await self.store.find_direct(tx_hash, idempotency_key, fingerprint):
            return Accepted(task=known)
        self.check_serving(endpoint.slug)
        await self.check_wallet()
        transfers = await self._find_transfers(tx_hash, proof)
        most = max((transfer.amount_units for transfer in transfers), default=0)
        price_units = reached_price(quote, most)
        new = new_task(
            endpoint,
            request,
            price_units=price_units,
            fingerprint=fingerprint,
            now=self.now(),
        )
        accepting = self._accept_and_wake(
            new, tx_hash, transfers, idempotency_key, is_proven=proof is not None
        )
        return Accepted(task=await self._run_to_end(accepting))

    async def _find_transfers(self, tx_hash: str, proof: PayerProof | None) -> Sequence[Transfer]:
        """Return the transfers that may pay; with a proof, only its signer's."""
        transfers = await self.transfers.find_transfers(
            tx_hash, floor_block=await self.cutoff_block(), born_at=self.born_at, now=self.now()
        )
        if proof is None:
            return transfers
        return await signed_transfers(self.chain, transfers, proof)

    async def _accept_and_wake(
        self,
        new: NewTask,
        tx_hash: str,
        transfers: Sequence[Transfer],
        idempotency_key: str | None,
        *,
        is_proven: bool,
    ) -> Task:
        bind_new_task(new)
        task = await self.store.accept_direct(
            new, tx_hash, transfers, idempotency_key, is_proven=is_proven
        )
        self.on_queued()
        return task


def _fingerprint(endpoint: Endpoint, request: GenerationRequest, tx_hash: str) -> str:
    """Return the hex SHA-256 of the request together with its transaction."""
    facts = request.fingerprint(endpoint.slug) + tx_hash
    return hashlib.sha256(facts.encode()).hexdigest()
