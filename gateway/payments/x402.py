"""Accepts payments of the x402 flow: the buyer sends a signed EIP-3009 authorization.

Keep the order of the checks, money depends on it: the `auth:` claim → Idempotency-Key → endpoint,
settler and wallet → terms → the payer's turn → terms again → chain → `reserve`, which also checks
that the payer is not barred (unless the money has already arrived) → settlement.
"""

import asyncio
from functools import partial

import attrs

from gateway.chain.authorization_checks import SPENT
from gateway.chain.smart_wallets import is_signed_by, is_signed_by_key, unwrap_authorization
from gateway.concurrency.shared_answers import SharedAnswer
from gateway.contracts import AuthorizationVerifier, NewTask, Proof, Quote
from gateway.contracts.store import PayerBusy, ReserveLimits
from gateway.domain import (
    Authorization,
    Block,
    Flow,
    GenerationRequest,
    Payment,
    PaymentState,
    Task,
)
from gateway.domain.eip3009 import Network, authorization_digest
from gateway.errors import PaymentRequired, ValidationError
from gateway.payments.accept import (
    Acceptance,
    Accepted,
    covers_cost,
    payer_key_hash,
    receipt_of,
)
from gateway.payments.claimants import Claimant
from gateway.payments.exposure import Exposure
from gateway.payments.methods import PaymentMethods
from gateway.payments.reconcile import EventSearch
from gateway.payments.sent import SentRequest
from gateway.payments.settlement import Settlements

# Nodes of the previous release search this many blocks before a payment and as many after it. This
# release searches by state.
_OLDER_NODES_BLOCKS = 30_000
_HEAD_TTL_S = 60.0
# So long after its end no node has an authorization in its checks. Clocks of nodes differ by less.
_OVER_S = 60.0


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Paid:
    """A request as it was sent, and the signed authorization that pays for it."""

    verifier: AuthorizationVerifier
    proof: Proof
    sent: SentRequest
    key_hash: str | None

    @property
    def signed(self) -> Authorization:
        """The signed authorization."""
        return self.proof.authorization

    @property
    def claim(self) -> str:
        """The authorization's `auth:` claim."""
        return self.sent.quote.network.authorization_key(self.signed.sender, self.signed.nonce)

    def may_pay_elsewhere(self, now: float) -> bool:
        """Whether another node may take the authorization, for any request."""
        is_ours = self.signed.recipient == self.sent.quote.wallet.lower()
        return is_ours and now < self.signed.valid_before + _OVER_S


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Purchase(_Paid):
    """A validated request, and the task that it shall get."""

    quote: Quote
    # What it must match as long as the money is not taken yet.
    unspent_quote: Quote
    new: NewTask

    def check_terms(self, now: float, *, is_unspent: bool = False) -> None:
        """Raise `PaymentRequired` if the authorization does not match the quote."""
        quote = self.unspent_quote if is_unspent else self.quote
        self.verifier.check_terms(self.proof, quote, now)


@attrs.define(kw_only=True, slots=False, eq=False, repr=False)
class X402Payments(Acceptance):
    """The flow of signed authorizations, up to the held or queued task."""

    methods: PaymentMethods
    settlements: Settlements
    exposure: Exposure
    search: EventSearch = attrs.field(factory=EventSearch)
    _recent_head: SharedAnswer[Block] = attrs.field(init=False)

    @_recent_head.default
    def _make_recent_head(self) -> SharedAnswer[Block]:
        # A standstill makes it too old, whatever the clock shows.
        return SharedAnswer(
            lambda: self.now() + self.standstills.count * _HEAD_TTL_S, ttl_s=_HEAD_TTL_S
        )

    async def accept_x402(
        self,
        quote: Quote,
        request: GenerationRequest,
        header: str,
        idempotency_key: str | None = None,
        verifier: AuthorizationVerifier | None = None,
        sent: SentRequest | None = None,
        *,
        is_unknown: bool = False,
    ) -> Accepted:
        """Accept a signed authorization as payment for one request.

        `verifier` is the one that the request's headers chose; None means the first. `sent` is the
        request before its validation, by which `find_x402` knows it again; `is_unknown` is whether
        that found nothing before. A retry with the same authorization and request returns the
        same task, with any verifier. So does a new authorization with the payer's Idempotency-Key;
        it is not used. The payment header may carry the key instead.

        An unknown outcome is not an error: the task is held until the chain shows it.

        Raises `PaymentRequired` with the standard reason, `IdempotencyConflict`, `ValidationError`
        for an invalid or conflicting key, and `ExecutionError` if nothing can be settled now.
        """
        verifier = verifier or self.methods.first
        sent = sent or SentRequest.of(quote, request)
        with self._counted(quote.endpoint.slug, Flow.X402):
            proof = await self._read_header(verifier, header, quote)
            key = _choose_key(idempotency_key, proof.idempotency_key)
            key_hash = payer_key_hash(proof.authorization.sender, key)
            paid = _Paid(verifier=verifier, proof=proof, sent=sent, key_hash=key_hash)
            return await self._accept(paid, quote, request, is_unknown=is_unknown)

    async def find_x402(
        self,
        sent: SentRequest,
        header: str,
        idempotency_key: str | None = None,
        verifier: AuthorizationVerifier | None = None,
        *,
        claimant: Claimant | None = None,
    ) -> Accepted | None:
        """Return the task of an authorization or key on record, or None.

        Needs neither endpoint nor price. Raises `PaymentRequired` if the authorization is on record
        for something else, `IdempotencyConflict` and `ValidationError`.
        """
        verifier = verifier or self.methods.first
        try:
            proof = verifier.read(header)
        except PaymentRequired:
            # It pays for nothing.
            return None
        key = _choose_key(idempotency_key, proof.idempotency_key)
        key_hash = payer_key_hash(proof.authorization.sender, key)
        paid = _Paid(verifier=verifier, proof=proof, sent=sent, key_hash=key_hash)
        if claimant is not None:
            claimant.name(paid.claim, key_hash)
            claimant.may_pay_elsewhere = paid.may_pay_elsewhere(self.now())
        with self._counted(sent.slug, Flow.X402, but=PaymentRequired):
            task = await self._find_known(paid)
            if task is None:
                return None
            if claimant is not None and task.payment.authorization == paid.signed:
                claimant.decide()
            return await self._conclude(paid, task)

    async def find_slug(self, network: Network, header: str) -> str | None:
        """Return the slug that a header's authorization has paid for, by whichever request.

        Raises `PaymentRequired` if it cannot be read.
        """
        signed = self.methods.first.read(header).authorization
        claim = network.authorization_key(signed.sender, signed.nonce)
        task = await self.store.find_claim(claim)
        return None if task is None else task.slug

    async def _accept(
        self, paid: _Paid, quote: Quote, request: GenerationRequest, *, is_unknown: bool
    ) -> Accepted:
        signed_units = paid.signed.value_units
        unspent_quote = quote
        if signed_units in quote.earlier_units:
            # Signed for a 402 from before a change of the price.
            quote = attrs.evolve(quote, price_units=signed_units)
            if covers_cost(quote, request, signed_units):
                unspent_quote = quote
        while True:
            purchase = self._begin(paid, quote, unspent_quote, request)
            known = await self._find_or_reserve(purchase, is_unknown=is_unknown)
            if accepted := await self._conclude(paid, known):
                return accepted
            is_unknown = False

    async def _conclude(self, paid: _Paid, task: Task) -> Accepted | None:
        """Return the task once its outcome is known, or after `outcome_s`.

        None: another authorization with this Idempotency-Key was released, which freed the key.
        Raises `PaymentRequired` if this authorization was released.
        """
        task = await self._wait_for_outcome(task)
        if task.payment.state is not PaymentState.RELEASED:
            headers = receipt_of(paid.verifier.receipt_headers, paid.proof, task.payment)
            return Accepted(task=task, headers=headers)
        if task.payment.authorization == paid.signed:
            raise PaymentRequired(SPENT)
        return None

    async def _read_header(
        self, verifier: AuthorizationVerifier, header: str, quote: Quote
    ) -> Proof:
        """Decode the header. An error that stops all sales takes precedence over a bad header."""
        try:
            return verifier.read(header)
        except PaymentRequired:
            await self._check_can_settle(quote)
            raise

    def _begin(
        self, paid: _Paid, quote: Quote, unspent_quote: Quote, request: GenerationRequest
    ) -> _Purchase:
        fingerprint, sent_hash = request.fingerprint(quote.endpoint.slug), paid.sent.sent_hash
        new = self._new_task(quote, request, quote.price_units, fingerprint, sent_hash)
        return _Purchase(
            verifier=paid.verifier,
            proof=paid.proof,
            sent=attrs.evolve(paid.sent, quote=quote),
            key_hash=paid.key_hash,
            quote=quote,
            unspent_quote=unspent_quote,
            new=new,
        )

    async def _find_or_reserve(self, purchase: _Purchase, *, is_unknown: bool) -> Task:
        """Return the task of this authorization, else the task of its key, else a new task."""
        # Before price and time window: a client that lost its 200 may retry after the authorization
        # has expired. `find_or_buy` also looks after any refusal, and `reserve` before it writes.
        if not is_unknown and (known := await self._find_known(purchase)):
            return known
        await self._check_can_settle(purchase.quote)
        return await self._reserve(purchase)

    async def _find_known(self, paid: _Paid) -> Task | None:
        """Return the task of this authorization, else the task of its key, else None.

        Raises `PaymentRequired` if the authorization paid for something else, and
        `IdempotencyConflict` if the key was used with another request.
        """
        sent, key_hash = paid.sent, paid.key_hash
        if task := await self.store.find_claim(paid.claim):
            return _require_same_payment(task, paid.proof, sent)
        if key_hash is not None and (task := await self.store.find_idempotent(key_hash)):
            # Only the payer may see the task of the payer's key.
            await self._check_signed(paid, task.payment)
            sent.require_of(task.payment)
            return task
        return None

    async def _check_can_settle(self, quote: Quote) -> None:
        self._check_sells(quote)
        await self.settlements.check_can_settle()
        await self.check_wallet()

    async def _check_signed(self, paid: _Paid, known: Payment) -> None:
        """Raise `PaymentRequired` unless the payer has signed this authorization for us.

        The balance does not matter, because no more money is taken.
        """
        signed = paid.signed
        quote = paid.sent.quote_for(known, signed.value_units)
        paid.verifier.check_terms(paid.proof, quote, self.now())
        digest = authorization_digest(signed, quote.network)
        signature = unwrap_authorization(signed).signature
        if await is_signed_by(self.chain, signed.sender, digest, signature):
            return
        # A wallet that is not deployed yet cannot verify, but its settlement can be simulated.
        if not await paid.verifier.check_chain(signed):
            raise PaymentRequired(SPENT)

    async def _reserve(self, purchase: _Purchase) -> Task:
        """Check the authorization, then reserve the payment.

        Concurrent requests with one claim get the same task.
        """
        signed = purchase.signed
        await self.standstills.wait()
        await self._check_terms_now(purchase)
        if not is_signed_by_key(signed, purchase.quote.network):
            # A forged signature must not get into the payer's queue.
            await purchase.verifier.check_chain(signed)
        async with self.exposure.turn(signed.sender, purchase.claim, purchase.key_hash) as turn:
            # `find` has read claim and key before the checks of the request. If a twin has paid
            # since then, `reserve` finds that.
            reads_again = turn.had_to_wait
            while True:
                if reads_again and (known := await self._find_known(purchase)):
                    return known
                reads_again = True
                search_from, limits = await self.standstills.guard(
                    partial(self._check_settlement, purchase),
                    before_again=partial(self._check_can_settle, purchase.quote),
                )
                reserving = self._reserve_and_settle(purchase, search_from, limits)
                try:
                    reserved = await self._run_to_end(reserving)
                except PayerBusy:
                    await self.exposure.check_not_barred(signed.sender)
                    await turn.wait_for_change()
                else:
                    if reserved is not None:
                        return reserved

    async def _check_terms_now(self, purchase: _Purchase) -> None:
        """Raise `PaymentRequired` if the authorization does not match the quote, or not yet."""
        if purchase.signed.valid_after > self.now():
            await self.standstills.compare(self.chain.head)
            await self._check_can_settle(purchase.quote)
        purchase.check_terms(self.now())

    async def _check_settlement(self, purchase: _Purchase) -> tuple[int, ReserveLimits]:
        """Return (first block that can contain the transfer, limits for `reserve`).

        Raises if this authorization cannot be settled, or has paid for something else.
        """
        quote, signed = purchase.quote, purchase.signed
        await self._check_terms_now(purchase)
        # A restored database may have lost the tasks of earlier transfers.
        cutoff = await self.cutoff_block()
        self._recent_head.begin(self.chain.head)
        is_unspent, limits, _ = await asyncio.gather(
            purchase.verifier.check_chain(signed),
            self.exposure.limits(signed),
            self.settlements.prepare(signed),
        )
        head = await self._recent_head.get(self.chain.head)
        self.standstills.doubt(head.timestamp)
        search_from = max(head.number - _OLDER_NODES_BLOCKS, cutoff + 1)
        if is_unspent:
            purchase.check_terms(self.now(), is_unspent=True)
            await self.settlements.settler.check(signed, quote)
            return search_from, limits
        await self.search.check_payment(
            self.chain, signed, quote, cutoff=cutoff, born_at=self.born_at
        )
        return search_from, attrs.evolve(limits, most_open=None, deployments=None)

    async def _reserve_and_settle(
        self, purchase: _Purchase, search_from: int, limits: ReserveLimits
    ) -> Task | None:
        """Reserve payment and task, then start to settle; None if the claim was taken."""
        self._begin_sale(purchase.new)
        reserved = await self.store.reserve(
            purchase.new, purchase.signed, purchase.claim, search_from, purchase.key_hash, limits
        )
        if reserved is not None and reserved.payment.state is PaymentState.RESERVED:
            await self.settlements.drive(reserved.payment, wait_s=0, is_new=True)
        return reserved

    async def _wait_for_outcome(self, task: Task) -> Task:
        """Return the task once its payment is closed, or after `outcome_s`."""
        if not task.payment.state.is_open:
            return task
        await self.settlements.drive(task.payment, wait_s=self.outcome_s)
        return await self.store.task(task.id) or task


def _require_same_payment(task: Task, proof: Proof, sent: SentRequest) -> Task:
    """Return the task of an `auth:` claim.

    Raises `PaymentRequired` unless request and authorization are the same, signature included,
    because the nonce is public.
    """
    if task.payment.authorization != proof.authorization or not sent.is_of(task.payment):
        raise PaymentRequired(SPENT)
    return task


def _choose_key(sent: str | None, signed: str | None) -> str | None:
    """Return the Idempotency-Key of the request or of its payment header.

    Raises `ValidationError` if they differ.
    """
    if sent is not None and signed is not None and sent != signed:
        raise ValidationError(
            "Idempotency-Key and the payment's identifier differ. Send one of them, or the same "
            "value in both."
        )
    return signed if sent is None else sent
