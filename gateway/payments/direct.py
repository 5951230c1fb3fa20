"""Accepts payments of the direct flow: the buyer submits the hash of a mined USDC transfer.

Keep the order of the checks, money depends on it: the `tx:` claim (a retry with its Idempotency-Key
gets its task) → endpoint → wallet → transfers of the mined transaction → the payer's signature, if
any → `accept_direct`.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import attrs
from eth_hash.auto import keccak

from gateway.chain.smart_wallets import is_signed_by, recover_signer
from gateway.contracts import Chain, NewTask, Quote, TransferVerifier
from gateway.domain import Flow, GenerationRequest, Task, Transfer
from gateway.domain.eip3009 import eip712_domain, transaction_key, word
from gateway.errors import ExecutionError, InvalidPayment, StoreUnavailable, TxNotFound
from gateway.payments.accept import (
    Acceptance,
    Accepted,
    reached_price,
)
from gateway.payments.claimants import Claimant
from gateway.payments.sent import SentRequest

_PROOF_TYPEHASH = keccak(b"PayerProof(bytes32 txHash,string slug,bytes32 requestHash)")

# Between two tries of the write while the database is away.
_REPEAT_S = 1.0
# The most senders asked by an RPC call. A transaction may contain a thousand dust transfers.
_MAX_ASKED = 8


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PayerProof:
    """An unverified `payerSignature`, and the 32 bytes that it must sign (EIP-712).

    A transaction hash is public, and without a proof the first client to submit it gets the
    generation. The signature binds the hash to one request and proves that the payer sent it.
    """

    digest: bytes
    signature: bytes


def proof_digest(quote: Quote, tx_hash: str, request_hash: bytes) -> bytes:
    """Return the 32 bytes that the sender of the transfer signs.

    The wallet is the verifying contract, so a signature for one gateway is invalid at another.
    """
    domain = eip712_domain("Generation Gateway", "1", quote.network.chain_id, quote.wallet)
    struct = keccak(
        _PROOF_TYPEHASH + word(tx_hash) + keccak(quote.endpoint.slug.encode()) + request_hash
    )
    return keccak(b"\x19\x01" + domain + struct)


async def signed_transfers(
    chain: Chain, transfers: Sequence[Transfer], proof: PayerProof
) -> list[Transfer]:
    """Return the transfers whose sender signed the proof, by key or as a contract (EIP-1271).

    Raises `InvalidPayment` if no sender did, and `ChainUnavailable`.
    """
    largest_first = sorted(transfers, key=lambda transfer: transfer.amount_units, reverse=True)
    senders = list(dict.fromkeys(transfer.sender for transfer in largest_first))
    signer = recover_signer(proof.digest, proof.signature)
    if signer not in senders:
        signer = await _find_smart_signer(chain, senders[:_MAX_ASKED], proof)
    signed = [transfer for transfer in transfers if transfer.sender == signer]
    if not signed:
        raise InvalidPayment(
            "The payerSignature is not by the sender of this transaction's transfer, or signs "
            "another transaction, slug or request.",
        )
    return signed


async def _find_smart_signer(chain: Chain, senders: Iterable[str], proof: PayerProof) -> str | None:
    for sender in senders:
        if await is_signed_by(chain, sender, proof.digest, proof.signature):
            return sender
    return None


@attrs.define(kw_only=True, slots=False, eq=False, repr=False)
class DirectPayments(Acceptance):
    """The direct flow, up to the queued task."""

    transfers: TransferVerifier
    # Returns the buyers' message while the chain shows no new transfers, or None.
    transfer_problem: Callable[[], str | None]
    # Wakes a worker for the queued task.
    on_queued: Callable[[], None]

    async def accept_direct(
        self,
        quote: Quote,
        request: GenerationRequest,
        tx_hash: str,
        idempotency_key: str | None,
        proof: PayerProof | None = None,
        sent: SentRequest | None = None,
    ) -> Accepted:
        """Accept a mined transfer as payment for one request.

        A transaction pays for one task. A retry with the same request, Idempotency-Key and
        transaction returns that task; `find_transfer` returns it before any check. With a proof,
        only its signer's transfers count.

        Raises the `PaymentError`s of spec §7.2, `IdempotencyConflict`, `ExecutionError` and
        `ChainUnavailable`.
        """
        sent = sent or SentRequest.of(quote, request)
        with self._counted(quote.endpoint.slug, Flow.DIRECT):
            return await self._accept_transfer(
                quote, request, tx_hash, idempotency_key, proof, sent
            )

    async def find_transfer(
        self,
        sent: SentRequest,
        tx_hash: str,
        idempotency_key: str | None,
        *,
        claimant: Claimant | None = None,
    ) -> Accepted | None:
        """Return the task of a transaction on record, or None if it has paid for nothing.

        Raises `TxAlreadyUsed` without the key of that purchase, and `IdempotencyConflict` if the
        key belongs to another request.
        """
        if claimant is not None:
            claimant.name(transaction_key(tx_hash))
        fingerprint = _fingerprint(sent.fingerprint, tx_hash)
        with self._counted(sent.slug, Flow.DIRECT):
            task = await self.store.find_direct(
                tx_hash, idempotency_key, fingerprint, sent.sent_hash
            )
        return None if task is None else Accepted(task=task)

    async def has_paid_for(self, tx_hash: str, slug: str) -> bool:
        """Whether a transaction is on record for an endpoint."""
        task = await self.store.find_claim(transaction_key(tx_hash))
        return task is not None and task.slug == slug

    async def _accept_transfer(
        self,
        quote: Quote,
        request: GenerationRequest,
        tx_hash: str,
        idempotency_key: str | None,
        proof: PayerProof | None,
        sent: SentRequest,
    ) -> Accepted:
        endpoint = quote.endpoint
        fingerprint = _fingerprint(request.fingerprint(endpoint.slug), tx_hash)
        self._check_sells(quote)
        await self.check_wallet()
        transfers = await self.standstills.guard(partial(self._find_transfers, tx_hash, proof))
        most = max((transfer.amount_units for transfer in transfers), default=0)
        price_units = reached_price(quote, most)
        new = self._new_task(quote, request, price_units, fingerprint, sent.sent_hash)
        accepting = self._accept_and_wake(
            new, tx_hash, transfers, idempotency_key, is_proven=proof is not None
        )
        return Accepted(task=await self._run_to_end(accepting))

    async def _find_transfers(self, tx_hash: str, proof: PayerProof | None) -> Sequence[Transfer]:
        """Return the transfers that may pay; with a proof, only its signer's."""
        try:
            transfers = await self.transfers.find_transfers(
                tx_hash, floor_block=await self.cutoff_block(), born_at=self.born_at, now=self.now()
            )
        except TxNotFound as unknown:
            # The transaction may be mined, or wait for a block.
            if problem := self.transfer_problem():
                raise ExecutionError(problem) from unknown
            raise
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
        self._begin_sale(new)
        task = await self._repeat_while_unknown(
            partial(
                self.store.accept_direct,
                new,
                tx_hash,
                transfers,
                idempotency_key,
                is_proven=is_proven,
            )
        )
        self.on_queued()
        return task

    async def _repeat_while_unknown(self, accept: Callable[[], Awaitable[Task]]) -> Task:
        """Repeat a write while the database does not tell whether it was committed.

        Without an Idempotency-Key only this request can be given the task: to the next one the
        transaction is used up. Raises `StoreUnavailable` after `outcome_s` seconds.
        """
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + self.outcome_s
        while True:
            try:
                return await accept()
            except StoreUnavailable:
                if clock() >= give_up_at:
                    raise
            await asyncio.sleep(_REPEAT_S)


def _fingerprint(of_request: str, tx_hash: str) -> str:
    """Return the hex SHA-256 of a request's fingerprint together with its transaction."""
    return hashlib.sha256((of_request + tx_hash).encode()).hexdigest()
