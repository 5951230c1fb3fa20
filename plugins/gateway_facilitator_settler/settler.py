"""The facilitator as a settler: it is asked before T1, and told to settle after T2.

A request to settle runs in a task of its own: the facilitator may take half a minute, and
meanwhile the payment's driver goes on looking at the chain, which alone decides.
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
from gateway_facilitator_settler.client import Answer, FacilitatorClient, FacilitatorSilent
from gateway_facilitator_settler.messages import SPENT, hash_of, refusal_of, request_of, version_of

_KINDS_S = 300.0  # /supported is believed so long
_UNREADABLE_S = 5.0  # and not asked again so long where it could not be read
_ANSWER_S = 2.0  # to wait for /settle before the caller looks at the chain again
_PAUSE_S = 10.0  # between two /settle for one payment
_HASH_PAUSE_S = 30.0  # the same where it named a transaction
_OK = 200
_KEPT_S = 120  # past `valid_before` that an open payment's hash may still be asked for
_CANNOT = (
    "The gateway cannot settle x402 payments now; nothing was charged. "
    "A direct USDC transfer works."
)
_log = structlog.get_logger()


class Client(Protocol):
    """How the facilitator is reached; both raise `FacilitatorSilent`."""

    async def get(self, path: str) -> Answer:
        """Return the answer to a GET."""
        ...

    async def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Return the answer to a POST of JSON."""
        ...


@attrs.define
class _Attempt:
    """The newest /settle of one payment; one that ended may be followed by another."""

    task: asyncio.Task[str | None]
    valid_before: int
    tx_hash: str | None = None  # the newest that the facilitator ever named
    again_at: float = math.inf  # until it has ended


class FacilitatorSettler:
    """Has each authorization sent by a facilitator. Implements `gateway.Settler`."""

    def __init__(self, context: PluginContext, client: Client | None = None) -> None:
        self._settings = context.settings
        self._chain = context.chain
        self._journal = context.journal
        self._now = context.now
        self._client = client or FacilitatorClient(context.settings, context.now)
        self._attempts: dict[int, _Attempt] = {}  # of payments not yet past `valid_before`
        self._reading = asyncio.Lock()
        self._version: int | None = None  # of x402, as /supported says; None: cannot be used
        self._problem = ""  # why there is none
        self._believed_until = 0.0
        self._quiet_until = 0.0  # the facilitator asked to be left alone

    @property
    def about(self) -> str:
        """What `gateway check` shows once `check_ready` went well; without the path."""
        host = urlsplit(self._settings.facilitator_url).hostname
        return f"{host} settles exact on {self._settings.chain.caip2} by x402 v{self._version}"

    async def check_ready(self) -> None:
        """Raise `ExecutionError` where the facilitator does not settle on our network now."""
        try:
            await self._known_version()
        except FacilitatorSilent as error:
            raise ExecutionError(_CANNOT, details=f"facilitator: {error}") from None

    async def check(self, authorization: Authorization, quote: Quote) -> None:
        """Ask `/verify`; raises `PaymentRequired` where it would refuse, else `ExecutionError`."""
        try:
            answer = await self._post("/verify", authorization, quote.price_units)
        except FacilitatorSilent as error:
            raise ExecutionError(_CANNOT, details=f"facilitator: {error}") from None
        if answer.body.get("isValid") is True and answer.status == _OK:
            return
        said = answer.body.get("invalidReason")
        refusal = refusal_of(said) if answer.body.get("isValid") is False else None
        _log.warning("facilitator.refused", status=answer.status, reason=_short(said))
        if refusal is None:
            raise ExecutionError(_CANNOT, details=f"facilitator: /verify: status {answer.status}")
        if refusal != SPENT and not await self._is_spent(authorization):
            raise PaymentRequired(refusal)
        # Spent since we looked: perhaps to pay us, by another request or by somebody else. A 402
        # would make the payer pay again; after T1 the chain tells.

    async def _is_spent(self, signed: Authorization) -> bool:
        call = AUTHORIZATION_STATE + word(signed.sender) + word(signed.nonce)
        return bool(await self._chain.call_uint(call))

    async def submit(self, payment: Payment) -> str | None:
        """Have the payment settled, at most once at a time and with pauses between.

        Returns the newest hash the facilitator named: where to look, and no proof of anything.
        """
        signed = _signed(payment)
        attempt = self._attempts.get(payment.id)
        if attempt is None or self._now() >= attempt.again_at:
            if self._now() >= signed.valid_before:
                return attempt.tx_hash if attempt else None
            attempt = self._begin(payment, signed, attempt)
        if attempt.tx_hash is None:
            await asyncio.wait({attempt.task}, timeout=_ANSWER_S)
        if attempt.tx_hash is not None:
            return attempt.tx_hash
        if not attempt.task.done():
            raise ChainUnavailable("The facilitator has not answered yet.")
        return attempt.task.result()

    async def tend(self) -> None:
        """Forget payments that no request can settle any more."""
        for payment_id, attempt in list(self._attempts.items()):
            if attempt.task.done() and self._now() >= attempt.valid_before + _KEPT_S:
                del self._attempts[payment_id]

    async def close(self) -> None:
        """Stop waiting for answers; what the facilitator did, the chain tells after the start."""
        tasks = [attempt.task for attempt in self._attempts.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, payment: Payment, signed: Authorization, last: _Attempt | None) -> _Attempt:
        """Start a /settle in a task that outlives its caller."""
        task = asyncio.create_task(self._settle(payment, signed), name=f"facilitate-{payment.id}")
        attempt = _Attempt(task, signed.valid_before, last.tx_hash if last else None)
        self._attempts[payment.id] = attempt
        task.add_done_callback(lambda _: self._end(attempt))
        return attempt

    def _end(self, attempt: _Attempt) -> None:
        """Note what came of a /settle, and when the next may follow."""
        task, found = attempt.task, None
        if not task.cancelled() and task.exception() is None:
            found = task.result()
        attempt.tx_hash = found or attempt.tx_hash
        attempt.again_at = self._now() + (_HASH_PAUSE_S if found else _PAUSE_S)

    async def _settle(self, payment: Payment, signed: Authorization) -> str | None:
        """T2, then one request. Raises `ChainUnavailable` where its outcome is unknown."""
        await self._journal.begin_settling(payment.id, None, now=self._now())
        try:
            answer = await self._post("/settle", signed, payment.price_units)
        except FacilitatorSilent as error:
            raise ChainUnavailable(f"The facilitator: {error}") from None
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
                reason=_short(answer.body.get("errorReason")),
            )
        return found  # also of a failure: "pending" names what it broadcast

    async def _post(self, path: str, signed: Authorization, price_units: int) -> Answer:
        version = await self._known_version()
        body = request_of(self._settings, version, signed, price_units)
        try:
            return await self._client.post(path, body)
        except FacilitatorSilent as error:
            self._heed(error)
            raise

    async def _known_version(self) -> int:
        """Return the form to speak, from /supported; raises `FacilitatorSilent`."""
        if self._now() < self._quiet_until:
            raise FacilitatorSilent("asks to be left alone for a while")
        async with self._reading:
            if self._now() >= self._believed_until:
                await self._read_supported()
        if self._version is None:
            raise FacilitatorSilent(self._problem)
        return self._version

    async def _read_supported(self) -> None:
        self._version = None
        network = self._settings.chain
        try:
            answer = await self._client.get("/supported")
        except FacilitatorSilent as error:
            self._heed(error)
            self._problem = str(error)
        else:
            self._version = version_of(answer.body, network) if answer.status == _OK else None
            self._problem = f"/supported: status {answer.status}, without exact on {network.caip2}"
        kept_s = _UNREADABLE_S if self._version is None else _KINDS_S
        self._believed_until = self._now() + kept_s

    def _heed(self, error: FacilitatorSilent) -> None:
        """Leave the facilitator alone for as long as it asks."""
        self._quiet_until = max(self._quiet_until, self._now() + error.retry_after_s)


def _signed(payment: Payment) -> Authorization:
    if payment.authorization is None:
        raise ValueError("a direct payment is not settled by a facilitator")
    return payment.authorization


def _short(reason: Any) -> str:
    """Return what a stranger wrote, fit for a log line."""
    return reason[:100] if isinstance(reason, str) else ""
