"""Accepts payments by further methods, such as vouchers, whose proofs the core cannot read.

Keep the order of the checks, money depends on it: the proof's claim → endpoint → price → the
method's check → Idempotency-Key → `reserve` → the method's answer. The key comes after the check,
because only a good proof shows that the key is this payer's.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping

import attrs
import structlog

from gateway.concurrency.fence import is_plugins_own
from gateway.concurrency.periodic import Periodic, always
from gateway.contracts import Clock, NewTask, Quote
from gateway.contracts.payment_methods import (
    MAX_PROOF_BYTES,
    MethodPayment,
    MethodProof,
    PaymentMethod,
    Refused,
    Taken,
    claim_key,
)
from gateway.domain import GenerationRequest, Payment, PaymentState, Task
from gateway.errors import ExecutionError, PaymentRequired
from gateway.payments.accept import (
    USED,
    Acceptance,
    Accepted,
    payable_price,
    payer_key_hash,
    receipt_of,
)
from gateway.payments.claimants import Claimant
from gateway.payments.exposure import Exposure
from gateway.payments.sent import SentRequest
from gateway.payments.settlement import Drivers
from gateway.store import SqlStore
from gateway.telemetry import signals

_log = structlog.get_logger()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class MethodTiming:
    """How long drivers and the sweep wait, in seconds."""

    # Timeout of a call to a method.
    ask_s: float = 30.0
    # The pause after the first error. It doubles each time, up to `sweep_s`.
    first_pause_s: float = 0.25
    # A driver stops after this time; the sweep starts another.
    drive_s: float = 120.0
    # Between two sweeps over all open payments.
    sweep_s: float = 15.0
    # A payment open for longer is swept by every node: the leader may lack its method.
    left_s: float = 60.0


@attrs.define(eq=False, slots=False, repr=False)
class MethodSettlements:
    """Asks methods until they answer: a driver for each open payment, and a sweep for the rest.

    The method answers that it took the money, or that it never will. An error or a timeout is not
    an answer, so the payment stays open. For x402, the chain decides: see `Settlements`.
    """

    _store: SqlStore
    _methods: Mapping[str, PaymentMethod]
    _now: Clock
    _on_settled: Callable[[], None]
    # Called with the task id of each refused payment.
    _on_dropped: Callable[[str], None]
    timing: MethodTiming = attrs.field(factory=MethodTiming, init=False)
    # Methods that have open payments but are not installed.
    _missed: set[str] = attrs.field(factory=set, init=False)
    # Whether this node sweeps payments that were just opened.
    _leads: Callable[[], bool] = attrs.field(default=always, init=False)

    def __attrs_post_init__(self) -> None:
        self._drivers = Drivers(self._on_settled)
        self._periodic = Periodic("method-sweep", self._sweep, self.timing.sweep_s)

    def start(self, is_mine: Callable[[], bool] = always) -> None:
        """Sweep at once, then every few seconds; while `is_mine` is False only old payments."""
        self._leads = is_mine
        self._periodic.start(every_s=self.timing.sweep_s)

    async def close(self, *, grace_s: float) -> None:
        """Stop; drivers get `grace_s` seconds to finish. The next start asks again."""
        await self._periodic.stop()
        await self._drivers.stop(grace_s=grace_s)

    async def drive(self, payment: Payment, *, wait_s: float) -> None:
        """Start the payment's driver unless it runs, and wait for it at most `wait_s`."""
        await self._drivers.drive(
            payment, self._settle_until_closed, drive_s=self.timing.drive_s, wait_s=wait_s
        )

    async def _sweep(self) -> None:
        is_leader, left_at = self._leads(), self._now() - self.timing.left_s
        for each in await self._store.methods.open_payments():
            if not is_leader and each.asked.reserved_at > left_at:
                continue
            if each.method in self._methods:
                self._drivers.ensure(
                    each.payment, self._settle_until_closed, drive_s=self.timing.drive_s
                )
            elif each.method not in self._missed:
                self._missed.add(each.method)
                _log.error("payment.method_missing", method=each.method, payment=each.payment.id)

    async def _settle_until_closed(self, payment: Payment) -> None:
        began_s = time.perf_counter()
        opened = await self._store.methods.open_payment(payment.id)
        if opened is None or not await self._store.methods.begin_settling(
            payment.id, now=self._now()
        ):
            return
        method = self._methods[opened.method]
        answer = await self._ask_until_answered(method, opened.asked)
        if not await self._store.methods.close(payment.id, answer, now=self._now()):
            return
        if isinstance(answer, Refused):
            _log.info("payment.method_refused", payment=payment.id, method=opened.method)
            self._on_dropped(payment.task_id)
            return
        _log.info("payment.settled", payment=payment.id, method=opened.method)
        signals.payment_settled.send(settler=opened.method, seconds=time.perf_counter() - began_s)

    async def _ask_until_answered(
        self, method: PaymentMethod, asked: MethodPayment
    ) -> Taken | Refused:
        """Return the method's answer. After an error, the money may have been taken, so retry."""
        pause_s = self.timing.first_pause_s
        while True:
            try:
                async with asyncio.timeout(self.timing.ask_s):
                    answer = await method.settle(asked)
                if isinstance(answer, Taken | Refused):
                    return answer
                _log.error("payment.method_invalid", method=method.name)
            except BaseException as error:
                if not is_plugins_own(error):
                    raise
                name = type(error).__name__
                _log.warning("payment.method_silent", method=method.name, error=name)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, self.timing.sweep_s)


# The proof is worth less than the price.
_TOO_SMALL = "insufficient_funds"
_KEY = re.compile(r"[a-z0-9._-]{1,200}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_MAX_PAYER_CHARS = 200
# Timeout of a method's check, in seconds.
_CHECK_S = 20.0


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Paid:
    """A request as it was sent, and the proof that pays for it."""

    method: PaymentMethod
    proof: MethodProof
    sent: SentRequest
    key_hash: str | None

    @classmethod
    def read(
        cls, method: PaymentMethod, header: str, idempotency_key: str | None, sent: SentRequest
    ) -> "_Paid":
        """Decode a payment header; raises what the method's `read` raises, and `ValueError`."""
        proof = check_proof(method.name, method.read(header))
        key_hash = payer_key_hash(claim_key(method.name, proof.payer), idempotency_key)
        return cls(method=method, proof=proof, sent=sent, key_hash=key_hash)

    @property
    def claim(self) -> str:
        """The proof's claim."""
        return claim_key(self.method.name, self.proof.key)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Purchase(_Paid):
    """A validated request, and the task that it shall get."""

    quote: Quote
    new: NewTask


@attrs.define(kw_only=True, slots=False, eq=False, repr=False)
class MethodPurchases(Acceptance):
    """The flow of further methods, up to the held or queued task."""

    method_settlements: MethodSettlements
    exposure: Exposure

    async def accept_by_method(
        self,
        method: PaymentMethod,
        quote: Quote,
        request: GenerationRequest,
        header: str,
        idempotency_key: str | None = None,
        sent: SentRequest | None = None,
    ) -> Accepted:
        """Accept a method's proof as payment for one request.

        A retry with the same proof and request returns the same task. So does a new good proof with
        the payer's Idempotency-Key; it is not used. An unknown outcome is not an error: the task is
        held until the method answers. `sent` is the request before its validation, by which
        `find_by_method` knows it again.

        Raises `PaymentRequired` with the reason, `IdempotencyConflict` and `ExecutionError`.
        """
        sent = sent or SentRequest.of(quote, request)
        with self._counted(quote.endpoint.slug, method.name):
            paid = _Paid.read(method, header, idempotency_key, sent)
            while True:
                purchase = self._begin_purchase(paid, quote, request)
                reserved = await self._find_or_reserve_claim(purchase)
                if accepted := await self._conclude_claim(paid, reserved):
                    return accepted

    async def find_by_method(
        self,
        method: PaymentMethod,
        sent: SentRequest,
        header: str,
        idempotency_key: str | None = None,
        *,
        claimant: Claimant | None = None,
    ) -> Accepted | None:
        """Return the task of a proof or key on record, or None.

        Needs neither endpoint nor price. Raises `PaymentRequired` if the proof is on record for
        something else, or is not good while its payer's key is; `IdempotencyConflict` and
        `ExecutionError`.
        """
        with self._counted(sent.slug, method.name, but=PaymentRequired):
            try:
                paid = _Paid.read(method, header, idempotency_key, sent)
            except PaymentRequired:
                # It pays for nothing.
                return None
            if claimant is not None:
                claimant.name(paid.claim, paid.key_hash)
            task = await self._find_proof(paid)
            if task is None:
                task = await self._find_own_key(paid)
            return None if task is None else await self._conclude_claim(paid, task)

    async def _conclude_claim(self, paid: _Paid, task: Task) -> Accepted | None:
        """Return the task once its outcome is known, or after `outcome_s`.

        None: another proof with this Idempotency-Key was refused, which freed the key. Raises
        `PaymentRequired` if this proof was refused.
        """
        task = await self._wait_for_answer(task)
        if task.payment.state is not PaymentState.RELEASED:
            return await self._accepted(paid, task)
        claimed = await self.store.find_claim(paid.claim)
        if claimed is not None and claimed.id == task.id:
            reason = await self.store.methods.answer_of(task.payment.id)
            raise PaymentRequired(reason or USED)
        return None

    def _begin_purchase(self, paid: _Paid, quote: Quote, request: GenerationRequest) -> _Purchase:
        price_units = payable_price(quote, request, paid.proof.value_units)
        fingerprint, sent_hash = request.fingerprint(quote.endpoint.slug), paid.sent.sent_hash
        new = self._new_task(quote, request, price_units, fingerprint, sent_hash)
        return _Purchase(
            method=paid.method,
            proof=paid.proof,
            sent=paid.sent,
            key_hash=paid.key_hash,
            quote=attrs.evolve(quote, price_units=price_units),
            new=new,
        )

    async def _find_or_reserve_claim(self, purchase: _Purchase) -> Task:
        """Return the task of this proof, else the task of its key, else a new task."""
        # Before price and proof: a client that lost its 200 may retry after the proof has expired.
        if known := await self._find_proof(purchase):
            return known
        self._check_sells(purchase.quote)
        await self.standstills.guard(lambda: self._check_proof(purchase, purchase.quote))
        if known := await self._find_key(purchase):
            return known
        reserved = await self._run_to_end(self._reserve_and_ask(purchase))
        if reserved is not None:
            return reserved
        # A concurrent request with the same proof came first.
        if known := await self._find_proof(purchase):
            return known
        raise PaymentRequired(USED)

    async def _find_proof(self, paid: _Paid) -> Task | None:
        """Return the task of this proof, or None.

        Raises `PaymentRequired` if the claim belongs to another request or proof: knowing the
        proof's key alone must reveal nothing.
        """
        task = await self.store.find_claim(paid.claim)
        if task is None:
            return None
        if not paid.sent.is_of(task.payment):
            raise PaymentRequired(USED)
        if not await self.store.methods.is_same_proof(paid.method.name, paid.proof):
            raise PaymentRequired(USED)
        return task

    async def _find_own_key(self, paid: _Paid) -> Task | None:
        """Like `_find_key`, before the proof is checked. Only a good proof shows whose the key is.

        Raises what `_check_proof` raises.
        """
        key_hash = paid.key_hash
        if key_hash is None or (task := await self.store.find_idempotent(key_hash)) is None:
            return None
        price_units = task.payment.price_units
        await self._check_proof(paid, attrs.evolve(paid.sent.quote, price_units=price_units))
        return await self._find_key(paid)

    async def _find_key(self, paid: _Paid) -> Task | None:
        """Return the task of the payer's Idempotency-Key, or None."""
        key_hash = paid.key_hash
        if key_hash is None or (task := await self.store.find_idempotent(key_hash)) is None:
            return None
        paid.sent.require_of(task.payment)
        return task

    async def _check_proof(self, paid: _Paid, quote: Quote) -> None:
        """Raise `PaymentRequired` unless the proof is valid now and covers the price."""
        if paid.proof.value_units < quote.price_units:
            raise PaymentRequired(_TOO_SMALL)
        try:
            async with asyncio.timeout(_CHECK_S):
                await paid.method.check(paid.proof, quote, self.now())
        except TimeoutError as error:
            raise ExecutionError("This payment cannot be checked now. Try again later.") from error

    async def _reserve_and_ask(self, purchase: _Purchase) -> Task | None:
        """Reserve payment and task, then start to settle; None if the claim was taken."""
        self._begin_sale(purchase.new)
        reserved = await self.store.methods.reserve(
            purchase.new,
            purchase.method.name,
            purchase.proof,
            purchase.key_hash,
            held_file_bytes=self.exposure.held_file_bytes,
        )
        if reserved is not None and reserved.payment.state is PaymentState.RESERVED:
            await self.method_settlements.drive(reserved.payment, wait_s=0)
        return reserved

    async def _wait_for_answer(self, task: Task) -> Task:
        """Return the task once its payment is closed, or after `outcome_s`."""
        if not task.payment.state.is_open:
            return task
        await self.method_settlements.drive(task.payment, wait_s=self.outcome_s)
        return await self.store.task(task.id) or task

    async def _accepted(self, paid: _Paid, task: Task) -> Accepted:
        is_open = task.payment.state.is_open
        reference = None if is_open else await self.store.methods.answer_of(task.payment.id)
        headers = receipt_of(paid.method.receipt_headers, paid.proof, reference)
        return Accepted(task=task, headers=headers)


def check_proof(name: str, proof: MethodProof) -> MethodProof:
    """Return the proof; raises `ValueError` if it cannot be stored."""
    mistakes = {
        "key": not _KEY.fullmatch(proof.key),
        "data": not 1 <= len(proof.data) <= MAX_PROOF_BYTES,
        "value_units": type(proof.value_units) is not int or not 0 < proof.value_units < 2**53,
        "payer": not (1 <= len(proof.payer) <= _MAX_PAYER_CHARS and proof.payer.isprintable()),
        "refund_to": proof.refund_to is not None and not _is_address(proof.refund_to),
    }
    wrong = [name for name, is_wrong in mistakes.items() if is_wrong]
    if wrong:
        raise ValueError(f"payment method {name}: {wrong[0]} of its proof is not allowed")
    return proof


def _is_address(text: str) -> bool:
    """Whether a refund may go there. Money sent to the zero address is lost."""
    return _ADDRESS.fullmatch(text) is not None and int(text, 16) != 0
