"""Code that all payment flows share: x402, direct and further methods."""

import asyncio
import contextlib
import hashlib
import re
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import attrs
import structlog

from gateway.catalog.fallbacks import fill_defaults
from gateway.chain.authorization_checks import SPENT
from gateway.chain.block_times import last_block_by
from gateway.concurrency.awaiting import outlive
from gateway.concurrency.shared_answers import SharedAnswer
from gateway.concurrency.standstills import Standstills, never
from gateway.contracts import Chain, Clock, NewTask, Quote
from gateway.contracts.store import PayerBusy
from gateway.domain import GenerationRequest, Task
from gateway.errors import (
    ExecutionError,
    GatewayError,
    PaymentError,
    PaymentRequired,
    StoreUnavailable,
    TooManyRequests,
)
from gateway.payments.claimants import Claimant, Claimants
from gateway.payments.way_values import checked_headers
from gateway.store import SqlStore
from gateway.telemetry import signals

Value = TypeVar("Value")
# A buyer who reads it believes it and pays again, so no other code may write it.
_UNCHARGED = "nothing was charged"
# Why a payment method's proof is refused: it paid for another request, or its method says no.
USED = "payment_already_used"
_CODE = re.compile(r"\w{1,80}", re.ASCII)
_SERVER_ERROR = 500
# The cutoff block's key in the store.
_CUTOFF = "floor_block"
_log = structlog.get_logger()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Accepted:
    """The task of a paid request, and headers for its 200."""

    task: Task
    headers: Mapping[str, str] = attrs.field(factory=dict)


class Find(Protocol):
    """Looks up a payment on record, and names the claimant first."""

    def __call__(self, *, claimant: Claimant) -> Awaitable[Accepted | None]:
        """Return the task, or None."""


def receipt_of(make: Callable[..., Mapping[str, str]], *arguments: Any) -> Mapping[str, str]:
    """Return the payment method's headers for the 200, or none if `make` fails.

    The money is taken by now, so a bug here must not cost the buyer the task.
    """
    try:
        return checked_headers(make(*arguments))
    except BaseException:  # noqa: BLE001 - a plugin may raise anything
        _log.exception("payment.receipt_failed")
        return {}


def reached_price(quote: Quote, units: int) -> int:
    """Return the price that `units` pays: the current one, else the highest valid earlier one."""
    lower = [price for price in quote.earlier_units if price <= units]
    return quote.price_units if units >= quote.price_units or not lower else max(lower)


def covers_cost(quote: Quote, request: GenerationRequest, units: int) -> bool:
    """Whether these units cover the known cost of the fallback that makes the order, if any.

    Only for earlier prices, and money that is not taken yet: what has moved buys.
    """
    if quote.maker is None:
        return True
    cost_micros = quote.maker.cost_of(fill_defaults(request, quote.maker))
    return cost_micros is None or cost_micros <= units


def payable_price(quote: Quote, request: GenerationRequest, units: int) -> int:
    """Return the price that `units` would pay, if they are not taken yet: see `covers_cost`."""
    price_units = reached_price(quote, units)
    is_covered = price_units == quote.price_units or covers_cost(quote, request, units)
    return price_units if is_covered else quote.price_units


def say_uncharged(refusal: GatewayError) -> GatewayError:
    """Return a refusal marked as uncharged, with these words after its first clause.

    Only code that has just read the claims may call this. A 400 or 402 does not need the words. An
    unknown outcome (`StoreUnavailable`) must not have them. The given error stays as it is:
    requests that share a question to the chain are refused by the same one, and may have been
    charged.
    """
    if isinstance(refusal, StoreUnavailable):
        return refusal
    told = type(refusal).__new__(type(refusal), *refusal.args)
    vars(told).update(vars(refusal), is_uncharged=True)
    has_words = _UNCHARGED in refusal.message.lower()
    if isinstance(refusal, ExecutionError | TooManyRequests) and not has_words:
        cause, _, advice = refusal.message.removesuffix(".").partition(". ")
        told.message = f"{cause}; {_UNCHARGED}." + (f" {advice}." if advice else "")
    return told


def _choose_refusal(refusal: GatewayError, other: GatewayError) -> GatewayError:
    """Return the error to send if the search for the refused payment raised `other`.

    A server error means that it may have been charged: a refusal reads as "not charged", so it must
    not hide that. Else the payment is on record for something else: it has paid, which a refusal of
    the payment would deny.
    """
    is_unknown = other.status >= _SERVER_ERROR
    return other if is_unknown or isinstance(refusal, PaymentRequired | PaymentError) else refusal


def _is_on_record(other: GatewayError) -> bool:
    """Whether the search's error may mean that the refused payment has paid for something else.

    Any other `PaymentRequired` refuses a payment that is not on record, whose key is.
    """
    return not isinstance(other, PaymentRequired) or other.reason in (SPENT, USED)


def payer_key_hash(payer: str, idempotency_key: str | None) -> str | None:
    """Return the hash that the store keeps for a payer's Idempotency-Key.

    It includes the payer, so two payers may use the same key. 0xFF never occurs in UTF-8, and the
    direct flow uses 0xFE, so the flows' hashes never collide.
    """
    if idempotency_key is None:
        return None
    return hashlib.sha256(payer.lower().encode() + b"\xff" + idempotency_key.encode()).hexdigest()


@attrs.define(kw_only=True, slots=False, eq=False, repr=False)
class Acceptance:
    """The base class of the flows."""

    store: SqlStore
    chain: Chain
    now: Clock
    # When the database was created, in Unix seconds.
    born_at: float
    # Raises `ExecutionError` if the endpoint with this slug cannot be sold now, or would not be
    # made by the endpoint with the second slug, which has checked the request.
    check_serving: Callable[[str, str], None]
    # Raises `ExecutionError` if the endpoint with the first slug would not be made by that with the
    # second any more; asked just before a payment is stored.
    check_maker: Callable[[str, str], None]
    # Raises if the operator's wallet must not be paid.
    check_wallet: Callable[[], Awaitable[None]]
    # Concurrent purchases share one search, because it takes dozens of RPC calls.
    _cutoff: SharedAnswer[int] = attrs.field(init=False)
    # Hold sales after the process stood still.
    standstills: Standstills = attrs.field(factory=never)
    # Seconds to wait for a settlement; then the response is a task whose payment is still open.
    outcome_s: float = 20.0
    claimants: Claimants = attrs.field(factory=Claimants)
    _unfinished: set[asyncio.Task[Any]] = attrs.field(factory=set, init=False)
    # A future for each purchase that has no response yet.
    _in_progress: set[asyncio.Future[None]] = attrs.field(factory=set, init=False)

    @_cutoff.default
    def _make_cutoff(self) -> SharedAnswer[int]:
        return SharedAnswer(self.now, ttl_s=0.0)

    async def find_or_buy(
        self, find: Find, buy: Callable[[PaymentRequired | None], Awaitable[Accepted]]
    ) -> Accepted:
        """Return the task of a payment on record, else buy one. Every paid request comes here.

        `find` looks the payment up. `buy` gets its refusal, checks the request and takes the
        payment. Nothing but the reading of the request may refuse it before: a client that lost its
        200 would believe the refusal and pay again. A concurrent request may have paid while `buy`
        refused this one.
        """
        with self.claimants.joined() as claimant:
            known = refused = None
            try:
                known = await find(claimant=claimant)
            except PaymentRequired as other:
                # The payment is for something else. `buy` refuses it too, and knows the price.
                refused = other
            if known is not None:
                return known
            try:
                await self.standstills.wait()
                return await buy(refused)
            except GatewayError as refusal:
                # Two refused requests must not wait for each other.
                claimant.decide()
                return await self._find_despite(refusal, find, claimant)

    async def _find_despite(
        self, refusal: GatewayError, find: Find, claimant: Claimant
    ) -> Accepted:
        """Return the task that another request has paid for; raise the refusal if there is none.

        A client that believes a 402 pays again, so it waits for the twins: the requests that could
        take the same payment when this one was refused. Raises `ExecutionError` if one still can
        then. Another refusal does not wait, and says nothing about the charge if there are twins.
        """
        # Before the look: a twin may reserve during it, and end.
        twins = self.claimants.twins_of(claimant)
        while True:
            # A request whose client disconnected may be reserving right now.
            await self.wait_for_writes()
            try:
                known = await find(claimant=claimant)
            except GatewayError as other:
                refusal, known = _choose_refusal(refusal, other), None
                if _is_on_record(other):
                    raise refusal from None
            if known is not None:
                return known
            if not twins:
                raise self._mark_uncharged(refusal, claimant)
            if not isinstance(refusal, PaymentRequired):
                raise refusal
            await self.claimants.wait(twins)
            twins = ()

    def _mark_uncharged(self, refusal: GatewayError, claimant: Claimant) -> GatewayError:
        """Return the refusal marked as uncharged.

        A 402 whose payment another node may take stays unmarked, since that node's checks cannot be
        seen. After any other refusal the buyer sends the same request again, which finds the task.
        """
        may_pay_elsewhere = claimant.names and claimant.may_pay_elsewhere
        is_unknown = may_pay_elsewhere and self.store.nodes.has_other_sellers
        if is_unknown and isinstance(refusal, PaymentRequired):
            return refusal
        return say_uncharged(refusal)

    def _new_task(
        self,
        quote: Quote,
        request: GenerationRequest,
        price_units: int,
        fingerprint: str,
        sent_hash: str | None = None,
    ) -> NewTask:
        """Return a task that is not in the store yet.

        A fallback gets the request with its own defaults. The fingerprint is the buyer's.
        """
        maker = quote.maker
        return NewTask(
            id=str(uuid.uuid4()),
            endpoint=quote.endpoint,
            maker=maker,
            names_model=quote.names_model,
            request=request if maker is None else fill_defaults(request, maker),
            request_hash=fingerprint,
            sent_hash=sent_hash,
            price_units=price_units,
            created_at=self.now(),
            request_id=structlog.contextvars.get_contextvars().get("request", ""),
        )

    def _check_sells(self, quote: Quote) -> None:
        """Raise `ExecutionError` if a quote cannot be sold now, as it was checked."""
        self.check_serving(quote.endpoint.slug, (quote.maker or quote.endpoint).slug)

    def _begin_sale(self, new: NewTask) -> None:
        """Add the task to the log lines of this purchase, and check its maker a last time."""
        structlog.contextvars.bind_contextvars(
            task=new.id, slug=new.endpoint.slug, provider=new.endpoint.provider
        )
        self.check_maker(new.endpoint.slug, (new.maker or new.endpoint).slug)

    async def cutoff_block(self) -> int:
        """Return the number of the last block that may be older than the database.

        Transfers up to it are refused: a new or restored database does not know their tasks, so
        each could be spent twice. It is the last block of its second, unless the endpoint reports
        milliseconds. Raises `ChainUnavailable`.
        """
        return await self._cutoff.get(self._find_cutoff)

    async def _find_cutoff(self) -> int:
        """Return the stored number, else find it by time and store it.

        Never cached in memory: a failover to another database deletes the stored number.
        """
        known = await self.store.known_meta(_CUTOFF)
        if known is None:
            head = await self.chain.head()
            found = await last_block_by(self.chain, self.born_at, head=head)
            if head.may_precede(self.born_at):
                # The endpoint may lag, so the number may be too low to store.
                return found
            known = await self.store.meta(_CUTOFF, lambda: str(found))
        return int(known)

    async def wait_for_purchases(self, *, timeout_s: float) -> None:
        """Wait until purchases in progress have a response."""
        if self._in_progress:
            await asyncio.wait(set(self._in_progress), timeout=timeout_s)

    async def wait_for_writes(self) -> None:
        """Wait until all purchase writes of this process are committed or failed.

        This includes writes for clients that have disconnected.
        """
        if self._unfinished:
            await asyncio.wait(set(self._unfinished))

    @contextlib.contextmanager
    def _counted(
        self, slug: str, flow: str, *, but: type[GatewayError] | tuple[()] = ()
    ) -> Iterator[None]:
        """Count the purchase as in progress, and send a signal if it is refused.

        Refusals of the kind `but` are counted by a later step.
        """
        decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_progress.add(decided)
        try:
            yield
        except but:
            raise
        except GatewayError as refusal:
            code = _code_of(refusal)
            signals.purchase_refused.send(slug=slug, flow=str(flow), code=code)
            raise
        finally:
            self._in_progress.discard(decided)
            decided.set_result(None)

    async def _run_to_end(self, work: Coroutine[None, None, Value]) -> Value:
        """Run work in its own task, so a client's disconnect does not cancel it halfway."""
        task = asyncio.create_task(work, name="accept")
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        try:
            return await outlive(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_after_disconnect)
            raise


def _code_of(refusal: GatewayError) -> str:
    """Return the error's code, or the standard reason of a 402, or `other`."""
    code = refusal.code or getattr(refusal, "reason", None) or ""
    return code if _CODE.fullmatch(code) else "other"


def _log_after_disconnect(task: asyncio.Task[Any]) -> None:
    """Log the error of work whose request was cancelled, unless it is a refusal."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, GatewayError | PayerBusy):
        _log.error("payment.fault_after_disconnect", exc_info=error)
