"""The facilitator as a settler: `/verify` before `reserve`, `/settle` after `begin_settling`.

A `/settle` runs in its own task, because it may take half a minute. Until then the payment's driver
keeps reading the chain, and only the chain decides.
"""

import asyncio
import math
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import attrs
import structlog

from gateway import (
    Authorization,
    ChainUnavailable,
    ExecutionError,
    Payment,
    PaymentRequired,
    PluginContext,
    Quote,
)
from gateway.domain.eip3009 import AUTHORIZATION_STATE, word
from gateway_facilitator_settler.client import Answer, FacilitatorClient, FacilitatorUnavailable
from gateway_facilitator_settler.listings import Listings
from gateway_facilitator_settler.messages import (
    SPENT,
    Purchase,
    hash_of,
    lists_endpoints,
    refusal_of,
    request_of,
    version_of,
)

# Seconds past `valid_before` for which the hash is kept: a driver may still need it.
_TTL_S = 120
_OK = 200
_CANNOT = "The gateway cannot settle x402 payments now. A direct USDC transfer works."
_log = structlog.get_logger()


@attrs.frozen(kw_only=True)
class FacilitatorTiming:
    """Timeouts and pauses of the settler, in seconds."""

    # How long a response of `/supported` is cached.
    kinds_s: float = 300.0

    # How long an unusable response of `/supported` is cached.
    unreadable_s: float = 5.0

    # How long to wait for `/settle` before the driver reads the chain again.
    answer_s: float = 2.0

    # The pause between two `/settle` for one payment.
    pause_s: float = 10.0

    # The same if the facilitator named a transaction.
    hash_pause_s: float = 30.0


class Client(Protocol):
    """HTTP to the facilitator. Both methods raise `FacilitatorUnavailable`."""

    async def get(self, path: str) -> Answer:
        """Send a GET."""
        ...

    async def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Send a POST of JSON."""
        ...


@attrs.define
class _Attempt:
    """The newest `/settle` of one payment. Another may follow once it has ended."""

    task: asyncio.Task[str | None]
    valid_before: int

    # The newest transaction that the facilitator named.
    tx_hash: str | None = None

    # When another `/settle` may follow (Unix seconds). Infinite while this one runs.
    again_at: float = math.inf


class FacilitatorSettler:
    """Lets a facilitator send each authorization. Implements `gateway.Settler`."""

    def __init__(
        self,
        context: PluginContext,
        client: Client | None = None,
        *,
        timing: FacilitatorTiming | None = None,
    ) -> None:
        self._settings = context.settings
        self._chain = context.chain
        self._journal = context.journal
        self._now = context.now
        self._find_endpoint = context.find_endpoint
        self._listings = Listings()
        self._client = client or FacilitatorClient(context.settings, context.now)
        self.timing = timing or FacilitatorTiming()
        # By payment id. `tend` removes payments that are past `valid_before`.
        self._attempts: dict[int, _Attempt] = {}
        self._reading = asyncio.Lock()
        # The x402 version from `/supported`. None: the facilitator is unusable, for the reason in
        # `_problem`.
        self._version: int | None = None
        self._problem = ""
        # Whether `/supported` lists the extension by which a Bazaar lists endpoints.
        self.lists_endpoints = False
        # When the cached `/supported` expires (Unix seconds).
        self._cached_until = 0.0
        # The facilitator asked for no requests until then (Unix seconds).
        self._quiet_until = 0.0

    @property
    def about(self) -> str:
        """A line for `gateway check` after `check_ready`. It names the host, not the path."""
        host = urlsplit(self._settings.facilitator_url).hostname
        about = f"{host} settles exact on {self._settings.chain.caip2} by x402 v{self._version}"
        listed = str(self._listings)
        return f"{about}; its Bazaar said: {listed}" if listed else about

    async def check_ready(self) -> None:
        """Raise `ExecutionError` if the facilitator cannot settle on our network now."""
        try:
            await self._known_version()
        except FacilitatorUnavailable as error:
            raise ExecutionError(_CANNOT, details=f"facilitator: {error}") from None

    async def check(self, authorization: Authorization, quote: Quote) -> None:
        """Ask `/verify`.

        Raises `PaymentRequired` if the facilitator refuses this authorization. Raises
        `ExecutionError` if it does not respond, or refuses for a reason that is not the payer's
        fault.
        """
        try:
            slug = quote.endpoint.slug
            answer = await self._post("/verify", authorization, quote.price_units, slug)
        except FacilitatorUnavailable as error:
            raise ExecutionError(_CANNOT, details=f"facilitator: {error}") from None
        if answer.body.get("isValid") is True and answer.status == _OK:
            return
        reason = answer.body.get("invalidReason")
        refusal = refusal_of(reason) if answer.body.get("isValid") is False else None
        _log.warning("facilitator.refused", status=answer.status, reason=_shorten(reason))
        if refusal is None:
            raise ExecutionError(_CANNOT, details=f"facilitator: /verify: status {answer.status}")
        if refusal != SPENT and not await self._is_spent(authorization):
            raise PaymentRequired(refusal)
        # The nonce was spent after the verifier read it, perhaps to pay us, by another request or
        # by a third party. A 402 would make the payer pay again. After `reserve` the chain decides.

    async def _is_spent(self, signed: Authorization) -> bool:
        call = AUTHORIZATION_STATE + word(signed.sender) + word(signed.nonce)
        return bool(await self._chain.call_uint(call))

    async def submit(self, payment: Payment) -> str | None:
        """Ask for the settlement of a payment: one `/settle` at a time, with pauses between.

        Returns the newest hash that the facilitator named, which is only a hint. Raises
        `ChainUnavailable` if the outcome of `/settle` is unknown.
        """
        signed = _authorization_of(payment)
        attempt = self._attempts.get(payment.id)
        if attempt is None or self._now() >= attempt.again_at:
            if self._now() >= signed.valid_before:
                return attempt.tx_hash if attempt else None
            attempt = self._begin(payment, signed, attempt)
        if attempt.tx_hash is None:
            await asyncio.wait({attempt.task}, timeout=self.timing.answer_s)
        if attempt.tx_hash is not None:
            return attempt.tx_hash
        if not attempt.task.done():
            raise ChainUnavailable("The facilitator has not answered yet.")
        return attempt.task.result()

    async def tend(self) -> None:
        """Forget payments that no `/settle` can settle any more."""
        for payment_id, attempt in list(self._attempts.items()):
            if attempt.task.done() and self._now() >= attempt.valid_before + _TTL_S:
                del self._attempts[payment_id]

    async def close(self) -> None:
        """Stop waiting for responses. After the next start the chain shows the outcome."""
        tasks = [attempt.task for attempt in self._attempts.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, payment: Payment, signed: Authorization, last: _Attempt | None) -> _Attempt:
        """Start a `/settle` in a task that outlives the caller."""
        task = asyncio.create_task(self._settle(payment, signed), name=f"facilitate-{payment.id}")
        attempt = _Attempt(task, signed.valid_before, last.tx_hash if last else None)
        self._attempts[payment.id] = attempt
        task.add_done_callback(lambda _: self._end(attempt))
        return attempt

    def _end(self, attempt: _Attempt) -> None:
        """Keep the result of a `/settle`, and schedule the next."""
        task, found = attempt.task, None
        if not task.cancelled() and task.exception() is None:
            found = task.result()
        attempt.tx_hash = found or attempt.tx_hash
        pause_s = self.timing.hash_pause_s if found else self.timing.pause_s
        attempt.again_at = self._now() + pause_s

    async def _settle(self, payment: Payment, signed: Authorization) -> str | None:
        """Record that the payment is settling, then send one `/settle`.

        Raises `ChainUnavailable` if the outcome is unknown.
        """
        await self._journal.begin_settling(payment.id, None, now=self._now())
        try:
            answer = await self._post("/settle", signed, payment.price_units, payment.slug)
        except FacilitatorUnavailable as error:
            raise ChainUnavailable(f"The facilitator: {error}") from None
        self._listings.note(payment.slug, answer.extensions)
        success = answer.body.get("success")
        if not isinstance(success, bool):
            raise ChainUnavailable(f"The facilitator: /settle: status {answer.status}")
        found = hash_of(answer.body, self._settings.chain)
        if not success or found is None:
            _log.warning(
                "facilitator.not_settled",
                payment=payment.id,
                status=answer.status,
                success=success,
                reason=_shorten(answer.body.get("errorReason")),
            )
        # A failure may name a hash too: "pending" names the transaction that was broadcast.
        return found

    async def _post(self, path: str, signed: Authorization, price_units: int, slug: str) -> Answer:
        version = await self._known_version()
        purchase = Purchase(
            signed=signed,
            price_units=price_units,
            slug=slug,
            endpoint=self._find_endpoint(slug),
        )
        body = request_of(self._settings, version, purchase)
        try:
            return await self._client.post(path, body)
        except FacilitatorUnavailable as error:
            self._note_pause(error)
            raise

    async def _known_version(self) -> int:
        """Return the x402 version to use, from `/supported`. Raises `FacilitatorUnavailable`."""
        if self._now() < self._quiet_until:
            raise FacilitatorUnavailable("asked for a pause, which is not over")
        async with self._reading:
            if self._now() >= self._cached_until:
                await self._read_supported()
        if self._version is None:
            raise FacilitatorUnavailable(self._problem)
        return self._version

    async def _read_supported(self) -> None:
        self._version = None
        network = self._settings.chain
        try:
            answer = await self._client.get("/supported")
        except FacilitatorUnavailable as error:
            self._note_pause(error)
            self._problem = str(error)
        else:
            self._version = version_of(answer.body, network) if answer.status == _OK else None
            self.lists_endpoints = self._version is not None and lists_endpoints(answer.body)
            self._problem = f"/supported: status {answer.status}, without exact on {network.caip2}"
        ttl_s = self.timing.unreadable_s if self._version is None else self.timing.kinds_s
        self._cached_until = self._now() + ttl_s

    def _note_pause(self, error: FacilitatorUnavailable) -> None:
        """Send nothing for as long as the facilitator asks."""
        self._quiet_until = max(self._quiet_until, self._now() + error.retry_after_s)


def _authorization_of(payment: Payment) -> Authorization:
    if payment.authorization is None:
        raise ValueError("a direct payment is not settled by a facilitator")
    return payment.authorization


def _shorten(reason: Any) -> str:
    """Cut the facilitator's reason to 100 characters, for the log."""
    return reason[:100] if isinstance(reason, str) else ""
