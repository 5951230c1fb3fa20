"""The part of accepting a payment that all flows share: x402, direct and other methods."""

import asyncio
import contextlib
import hashlib
import re
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

import attrs
import structlog

from gateway.chain.block_times import last_block_up_to
from gateway.concurrency.awaiting import outlive
from gateway.concurrency.shared_answers import SharedAnswer
from gateway.contracts import Chain, Clock, NewTask, Quote
from gateway.contracts.store import PayerBusy
from gateway.domain import Endpoint, GenerationRequest, Task
from gateway.errors import GatewayError, IdempotencyConflict
from gateway.store import SqlStore
from gateway.telemetry import signals

Value = TypeVar("Value")
_HEADER = re.compile(r"[A-Za-z0-9-]+")
_CODE = re.compile(r"\w{1,80}", re.ASCII)
# The key of the cutoff block in the store.
_CUTOFF = "floor_block"
# If the newest block is this much older than the database, the endpoint lags behind.
_STALE_S = 60
_log = structlog.get_logger()


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
    """Return a task that the store does not hold yet."""
    return NewTask(
        id=str(uuid.uuid4()),
        endpoint=endpoint,
        request=request,
        request_hash=fingerprint,
        price_units=price_units,
        created_at=now,
        request_id=structlog.contextvars.get_contextvars().get("request", ""),
    )


def receipt_of(make: Callable[..., Mapping[str, str]], *arguments: Any) -> Mapping[str, str]:
    """Return the headers that a payment method adds to the 200, or none if it fails.

    The money is taken, so a bug in a receipt must not keep the task from its buyer.
    """
    try:
        return _checked_headers(make(*arguments))
    except Exception:  # noqa: BLE001 - a plugin may raise anything
        _log.exception("payment.receipt_failed")
        return {}


def _checked_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return headers that can be sent; raises `ValueError` for others."""
    for name, value in headers.items():
        if not (_HEADER.fullmatch(name) and value.isascii() and value.isprintable()):
            raise ValueError(f"{name!r} cannot be a header of an answer")
    return headers


def reached_price(quote: Quote, units: int) -> int:
    """Return the price that these units pay: the present one, else an earlier one still valid."""
    lower = [price for price in quote.earlier_units if price <= units]
    return quote.price_units if units >= quote.price_units or not lower else max(lower)


def bind_new_task(new: NewTask) -> None:
    """Bind the new task to the log lines of this purchase."""
    structlog.contextvars.bind_contextvars(
        task=new.id, slug=new.endpoint.slug, provider=new.endpoint.provider
    )


def require_same_request(task: Task, fingerprint: str) -> Task:
    """Return the task; raises `IdempotencyConflict` if its key was used with another request."""
    if task.payment.request_hash != fingerprint:
        raise IdempotencyConflict("This Idempotency-Key was used with another request.")
    return task


def payer_key_hash(payer: str, idempotency_key: str | None) -> str | None:
    """Return the hash by which the store finds a payer's Idempotency-Key.

    The payer is part of the hash, so two payers may use the same key. The separator 0xFF never
    occurs in UTF-8, and the direct flow uses 0xFE, so hashes of the flows never collide.
    """
    if idempotency_key is None:
        return None
    return hashlib.sha256(payer.lower().encode() + b"\xff" + idempotency_key.encode()).hexdigest()


@attrs.define(kw_only=True, slots=False)
class Acceptance:
    """The base of each flow that turns a proof of payment into a task."""

    store: SqlStore
    chain: Chain
    now: Clock

    # Unix seconds at which the database was created.
    born_at: float

    # Raises `ExecutionError` if the endpoint cannot be sold now.
    check_serving: Callable[[str], None]

    # Raises an error if the operator's wallet must not be paid.
    check_wallet: Callable[[], Awaitable[None]]

    # Concurrent purchases share one search for the cutoff block: it takes dozens of RPC calls.
    _cutoff: SharedAnswer[int] = attrs.field(init=False)

    # Seconds to wait for a settlement. After that the response is a task whose payment is open.
    outcome_s: float = 20.0

    _unfinished: set[asyncio.Task[Any]] = attrs.field(factory=set, init=False)

    # One for each purchase without a response.
    _begun: set[asyncio.Future[None]] = attrs.field(factory=set, init=False)

    @_cutoff.default
    def _make_cutoff(self) -> SharedAnswer[int]:
        return SharedAnswer(self.now, kept_s=0.0)

    async def cutoff_block(self) -> int:
        """Return the number of the last block before the database was created.

        Earlier transfers are refused: a new or restored database has no record of their tasks.
        Raises `ChainUnavailable`.
        """
        return await self._cutoff.get(self._find_cutoff)

    async def _find_cutoff(self) -> int:
        """Return the stored number, else search the chain for it and store it.

        The search is by time, so transfers mined after the database was created count even if the
        chain was unreachable then. A failover deletes the stored number, so it is never cached.
        """
        known = await self.store.known_meta(_CUTOFF)
        if known is None:
            head = await self.chain.head()
            found = await last_block_up_to(self.chain, head, self.born_at)
            if head.timestamp < self.born_at - _STALE_S:
                # The endpoint lags behind, so the number is too low to be kept.
                return found
            known = await self.store.meta(_CUTOFF, lambda: str(found))
        return int(known)

    async def wait_for_begun(self, *, timeout_s: float) -> None:
        """Wait until the purchases under way have a response."""
        if self._begun:
            await asyncio.wait(set(self._begun), timeout=timeout_s)

    async def wait_for_writes(self) -> None:
        """Wait until all writes of purchases in this process have been committed or have failed.

        A client that disconnected may have begun one of them.
        """
        if self._unfinished:
            await asyncio.wait(set(self._unfinished))

    @contextlib.contextmanager
    def _counted(self, slug: str, flow: str) -> Iterator[None]:
        """Count a purchase as under way inside the block, and send a signal if it is refused."""
        decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._begun.add(decided)
        try:
            yield
        except GatewayError as refusal:
            code = _code_of(refusal)
            signals.purchase_refused.send(slug=slug, flow=str(flow), code=code)
            raise
        finally:
            self._begun.discard(decided)
            decided.set_result(None)

    async def _run_to_end(self, work: Coroutine[None, None, Value]) -> Value:
        """Run work in its own task, so that a disconnecting client cannot cancel it halfway."""
        task = asyncio.create_task(work, name="accept")
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        try:
            return await outlive(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_unseen)
            raise


def _code_of(refusal: GatewayError) -> str:
    """Return the error's code or the standard reason of a 402; `other` for a free text."""
    said = refusal.code or getattr(refusal, "reason", None) or ""
    return said if _CODE.fullmatch(said) else "other"


def _log_unseen(task: asyncio.Task[Any]) -> None:
    """Log an error whose request was cancelled. Refusals are not logged."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, GatewayError | PayerBusy):
        _log.error("payment.fault_unseen", exc_info=error)
