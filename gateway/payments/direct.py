"""Accepts payments of the direct flow: the buyer submits the hash of a mined USDC transfer.

The order of the checks keeps money safe: `tx:` claim, which a repeat may have with its
Idempotency-Key → the endpoint can serve → the wallet → transfers in the mined transaction → the
payer's signature, if there is one → `accept_direct` → the task.
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
    """The direct flow, until the task is queued."""

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
        """Take a mined transfer as the payment of one request.

        A transaction pays for one task. The same request with the same Idempotency-Key and
        transaction returns that task again. With a proof, only transfers by its signer count.

        Raises the `PaymentError`s of spec §7.2, `IdempotencyConflict`, `ExecutionError`,
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
        """Return the transfers that may pay: with a proof, those by its signer."""
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
        """Commit payment and task in one write, then wake a worker."""
        bind_new_task(new)
        task = await self.store.accept_direct(
            new, tx_hash, transfers, idempotency_key, is_proven=is_proven
        )
        self.on_queued()
        return task


def _fingerprint(endpoint: Endpoint, request: GenerationRequest, tx_hash: str) -> str:
    """Return the SHA-256 (hex) of a direct request; the transaction is part of the request."""
    facts = request.fingerprint(endpoint.slug) + tx_hash
    return hashlib.sha256(facts.encode()).hexdigest()
