"""Accepts payments: from a proof to a task, in the order of checks that keeps money safe.

X402: known authorization → known key → can serve → the payer's turn → terms → chain →
not barred, unless the money is here already → T1 → settlement → the task.
Direct: known key → can serve → transaction on-chain → payer's proof → T1' → the task.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import attrs

from gateway.chain.signatures import is_signed_by
from gateway.chain.smart_wallets import is_signed_by_key, unwrap_authorization
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
from gateway.contracts.payers import PayerBusy, ReserveLimits
from gateway.domain import (
    Authorization,
    GenerationRequest,
    PaymentState,
    Task,
    Transfer,
)
from gateway.domain.eip3009 import authorization_digest, transaction_key
from gateway.errors import PaymentRequired, TxAlreadyUsed
from gateway.payments.cutoff import cutoff_block
from gateway.payments.exposure import Exposure
from gateway.payments.idempotency import (
    SPENT,
    Accepted,
    claimed,
    direct_fingerprint,
    direct_key_hash,
    new_task,
    payer_key_hash,
    repeated,
)
from gateway.payments.payer_proof import PayerProof, signed_transfers
from gateway.payments.settlement import Settlements
from gateway.payments.spent_nonces import find_payment

Value = TypeVar("Value")

_OUTCOME_S = 20.0  # an unknown outcome is answered after this long, with the task held
_UNSPENT_MARGIN = 5_000  # blocks (under 3 h) an endpoint may lag behind when it says "unspent"


@attrs.define(kw_only=True)
class Payments:
    """Both flows, up to the point where a task waits in the queue."""

    store: Store
    chain: Chain
    authorizations: AuthorizationVerifier
    transfers: TransferVerifier
    settlements: Settlements
    on_queued: Callable[[], None]  # a task waits for a lane
    check_serving: Callable[[str], None]  # raises ExecutionError where a slug may not be sold now
    check_wallet: Callable[[], Awaitable[None]]  # raises where the wallet must not be paid
    now: Clock
    born_at: float  # when the database was made
    exposure: Exposure
    _accepting: set[asyncio.Task[Any]] = attrs.field(factory=set, init=False)

    async def accept_x402(
        self,
        quote: Quote,
        request: GenerationRequest,
        header: str,
        idempotency_key: str | None = None,
    ) -> Accepted:
        """Take a signed authorization; the same one with the same request gives the same task.

        So does a fresh one under the payer's same Idempotency-Key; it is then not used.
        Raises `PaymentRequired` with the standard reason, `IdempotencyConflict`,
        `ExecutionError` where settling cannot work now. An unknown outcome is no error: the
        task is held until the chain tells.
        """
        proof = await self._read(header, quote.endpoint.slug)
        key_hash = payer_key_hash(proof.authorization.sender, idempotency_key)
        while True:
            task = await self._outcome(await self._task_for(quote, request, proof, key_hash))
            if task.payment.state is not PaymentState.RELEASED:
                headers = self.authorizations.receipt_headers(proof, task.payment)
                return Accepted(task=task, headers=headers)
            if task.payment.authorization == proof.authorization:
                raise PaymentRequired(SPENT)
            # Nothing was taken by who had the key: it is free for this authorization.

    async def _read(self, header: str, slug: str) -> Proof:
        try:
            return self.authorizations.read(header)
        except PaymentRequired:
            await self._check_can_settle(slug)
            raise

    async def _task_for(
        self, quote: Quote, request: GenerationRequest, proof: Proof, key_hash: str | None
    ) -> Task:
        """Return the task of this authorization, else that of its key, else a new one (T1)."""
        fingerprint = request.fingerprint(quote.endpoint.slug)
        new = new_task(
            quote.endpoint,
            request,
            price_units=quote.price_units,
            fingerprint=fingerprint,
            now=self.now(),
        )
        claim = quote.network.authorization_key(
            proof.authorization.sender, proof.authorization.nonce
        )
        # Before price and window: a client that lost its 200 may come back late.
        if known := await self._known(quote, proof, claim, new, key_hash):
            return known
        await self._check_can_settle(quote.endpoint.slug)
        return await self._reserve(quote, proof, claim, new, key_hash)

    async def _known(
        self, quote: Quote, proof: Proof, claim: str, new: NewTask, key_hash: str | None
    ) -> Task | None:
        """Return the task of this authorization, else that of its key; None for a new one."""
        if task := await self.store.find_claim(claim):
            return claimed(task, proof, new)
        if key_hash is not None and (task := await self.store.find_idempotent(key_hash)):
            await self._check_signed(quote, proof)  # before its payer is told anything
            return repeated(task, new.request_hash)
        return None

    async def _check_can_settle(self, slug: str) -> None:
        self.check_serving(slug)
        await self.settlements.check_can_settle()
        await self.check_wallet()

    async def _check_signed(self, quote: Quote, proof: Proof) -> None:
        """Refuse what the payer did not sign for us now; it need not have the money once more."""
        signed = proof.authorization
        self.authorizations.check_terms(proof, quote, self.now())
        digest = authorization_digest(signed, quote.network)
        signature = unwrap_authorization(signed).signature
        if await is_signed_by(self.chain, signed.sender, digest, signature):
            return
        if not await self.authorizations.check_chain(signed):  # a wallet not deployed yet may do
            raise PaymentRequired(SPENT)

    async def _reserve(
        self, quote: Quote, proof: Proof, claim: str, new: NewTask, key_hash: str | None
    ) -> Task:
        """Check, then T1. Whoever claims first has the task; the other is given it as well."""
        signed = proof.authorization
        self.authorizations.check_terms(proof, quote, self.now())
        if not is_signed_by_key(signed, quote.network):
            # What a stranger forged must not take a place in this payer's line.
            await self.authorizations.check_chain(signed)
        async with self.exposure.turn(signed.sender, claim, key_hash) as turn:
            while True:
                if known := await self._known(quote, proof, claim, new, key_hash):
                    return known
                self.authorizations.check_terms(proof, quote, self.now())
                first, limits = await self._checked(quote, signed)
                beginning = self._begin(new, signed, claim, first, key_hash, limits)
                try:
                    reserved = await self._to_its_end(beginning)
                except PayerBusy:
                    await turn.wait_for_change()
                else:
                    if reserved is not None:
                        return reserved

    async def _checked(self, quote: Quote, signed: Authorization) -> tuple[int, ReserveLimits]:
        """Return the first block that can hold its transfer, and what T1 must still check.

        Raises where this authorization would not be settled, or paid for something else.
        """
        # What was used below the floor was used for a task that a restored database forgot.
        floor = await self.cutoff_block()
        is_unspent, head, limits = await asyncio.gather(
            self.authorizations.check_chain(signed),
            self.chain.head(),
            self.exposure.limits(signed.sender),
        )
        if is_unspent:
            await self.exposure.check_not_barred(signed.sender)
            await self.settlements.check(signed, quote)
            return max(head.number - _UNSPENT_MARGIN, floor + 1), limits
        first = await find_payment(
            self.chain, signed, quote.network, price_units=quote.price_units, floor=floor
        )
        return first, attrs.evolve(limits, most_open=None)

    async def _begin(
        self,
        new: NewTask,
        signed: Authorization,
        claim: str,
        first: int,
        key_hash: str | None,
        limits: ReserveLimits,
    ) -> Task | None:
        """T1, then start to settle: both, also where the client leaves meanwhile."""
        reserved = await self.store.reserve(new, signed, claim, first, key_hash, limits)
        if reserved is not None and reserved.payment.state is PaymentState.RESERVED:
            await self.settlements.drive(reserved.payment, wait_s=0)
        return reserved

    async def _outcome(self, task: Task) -> Task:
        """Wait for a payment that is on its way; give up waiting after some seconds."""
        if task.payment.state not in (PaymentState.RESERVED, PaymentState.SETTLING):
            return task
        await self.settlements.drive(task.payment, wait_s=_OUTCOME_S)
        return await self.store.task(task.id) or task

    async def accept_direct(
        self,
        quote: Quote,
        request: GenerationRequest,
        tx_hash: str,
        idempotency_key: str | None,
        proof: PayerProof | None = None,
    ) -> Accepted:
        """Take a mined transfer; its transaction pays once, unless an Idempotency-Key repeats.

        With a proof only the transfers count whose sender made it.
        Raises the `PaymentError`s of spec §7.2, `IdempotencyConflict`, `ChainUnavailable`.
        """
        key_hash, endpoint = direct_key_hash(idempotency_key), quote.endpoint
        fingerprint = direct_fingerprint(endpoint, request, tx_hash)
        if known := await self._repeated(key_hash, fingerprint):
            return Accepted(task=known)
        self.check_serving(endpoint.slug)
        if await self.store.find_claim(transaction_key(tx_hash)):
            # The first try of this very request may have committed since the look above.
            if known := await self._repeated(key_hash, fingerprint):
                return Accepted(task=known)
            raise TxAlreadyUsed("This transaction already paid for a generation.")
        await self.check_wallet()
        transfers = await self.transfers.find_transfers(
            tx_hash, floor_block=await self.cutoff_block(), born_at=self.born_at, now=self.now()
        )
        if proof is not None:
            transfers = await signed_transfers(self.chain, transfers, proof)
        new = new_task(
            endpoint,
            request,
            price_units=quote.price_units,
            fingerprint=fingerprint,
            now=self.now(),
        )
        taking = self._take(new, tx_hash, transfers, key_hash, is_proven=proof is not None)
        return Accepted(task=await self._to_its_end(taking))

    async def _take(
        self,
        new: NewTask,
        tx_hash: str,
        transfers: Sequence[Transfer],
        key_hash: str | None,
        *,
        is_proven: bool,
    ) -> Task:
        """T1', then wake a lane: both, also where the client leaves meanwhile."""
        task = await self.store.accept_direct(
            new, tx_hash, transfers, key_hash, is_proven=is_proven
        )
        self.on_queued()
        return task

    async def _repeated(self, key_hash: str | None, fingerprint: str) -> Task | None:
        known = await self.store.find_idempotent(key_hash) if key_hash is not None else None
        return repeated(known, fingerprint) if known is not None else None

    async def _to_its_end(self, work: Coroutine[None, None, Value]) -> Value:
        """Run what must not stop halfway in a task of ours: the client may leave meanwhile."""
        task = asyncio.create_task(work, name="accept")
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)
        return await asyncio.shield(task)

    async def cutoff_block(self) -> int:
        """Return the block after which transfers count."""
        return await cutoff_block(self.store, self.chain, self.born_at)
