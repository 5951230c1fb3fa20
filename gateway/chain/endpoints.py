"""JSON-RPC over several endpoints, tried in order, each checked before its first use.

If an endpoint times out, refuses or returns nonsense, the next one is tried, and this one rests for
a while. If all fail and at least one refused, the call is retried (`retries`). web3 is imported at
the first call, in a thread, because the import takes most of a second.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import attrs
import structlog

from gateway.chain.log_ranges import LogRange, LogsTooNarrow
from gateway.chain.retries import (
    UNREACHABLE,
    Cooldown,
    EndpointLags,
    EndpointRefused,
    RangeRefused,
    RetryBudget,
    RetryTiming,
    StatePruned,
    read_failure,
    retry_refused,
)
from gateway.concurrency.late_imports import import_ethereum
from gateway.contracts import CallReverted
from gateway.errors import ChainUnavailable
from gateway.telemetry import signals

Answer = TypeVar("Answer")
Found = TypeVar("Found")
Check = Callable[["Endpoint"], Awaitable[None]]

# A refused broadcast is retried for this long; the settlement driver sends it again later.
_BROADCAST_S = 0.5
_log = structlog.get_logger()


@attrs.define(eq=False, repr=False)
class Endpoint:
    """One RPC endpoint. Its URL may contain a key, so logs show its position in the list."""

    place: int
    provider: Any
    timeout_s: float
    checks_passed: int = 0
    cooldown: Cooldown = attrs.field(factory=Cooldown)
    logs: LogRange = attrs.field(init=False)
    _is_failing: bool = attrs.field(default=False, init=False)

    @logs.default
    def _make_logs(self) -> LogRange:
        return LogRange(self.place)

    async def request(self, method: str, *params: Any, is_optional: bool = False) -> Any:
        """Return a call's result.

        `is_optional`: the endpoint may fail at such calls and serve all others, so it is judged by
        their results and general refusals only.
        Raises `CallReverted` if the contract reverted, `EndpointRefused` if the endpoint refused,
        and `ChainUnavailable` for any other failure.
        """
        result, began_s, is_judged = "silent", time.perf_counter(), not is_optional
        try:
            answer = await self._request(method, params, is_optional=is_optional)
            result, is_judged = "ok", True
        except CallReverted:
            result = "reverted"
            raise
        except EndpointRefused as refusal:
            result, is_judged = "refused", is_judged or refusal.is_general
            raise
        finally:
            seconds = time.perf_counter() - began_s
            signals.rpc_answered.send(
                endpoint=self.place, method=method, result=result, seconds=seconds
            )
            if is_judged:
                self._note_health(is_failing=result in ("silent", "refused"))
        return answer

    def _note_health(self, *, is_failing: bool) -> None:
        if is_failing or self._is_failing:
            self._is_failing = is_failing
            signals.rpc_failing.send(endpoint=self.place, is_failing=is_failing)

    async def _request(self, method: str, params: Sequence[Any], *, is_optional: bool) -> Any:
        """Return a call's result; the endpoint rests after a failure by which it is judged."""
        try:
            answer = await self._make_request(method, params)
        except EndpointRefused as refusal:
            if refusal.is_general or not is_optional:
                self._begin_cooldown(refusal, retry_after_s=refusal.retry_after_s)
            raise
        except ChainUnavailable as silence:
            if not is_optional:
                self._begin_cooldown(silence, least_s=self.timeout_s)
            raise
        if answer.get("error") is not None:
            failure = read_failure(self.place, method, answer["error"])
            if isinstance(failure, EndpointRefused) and not isinstance(failure, EndpointLags):
                self._begin_cooldown(failure)
            elif isinstance(failure, CallReverted):
                self.cooldown.end()
            raise failure
        self.cooldown.end()
        return answer["result"]

    async def _make_request(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self.timeout_s):
                answer = await self.provider.make_request(method, list(params))
        except EndpointRefused as error:
            return self._read_refusal(method, error)
        except Exception as error:  # noqa: BLE001 - any other error counts as silence
            kind = type(error).__name__
            raise ChainUnavailable(f"RPC endpoint {self.place}: {kind} at {method}") from None
        if not isinstance(answer, dict) or ("error" not in answer and "result" not in answer):
            raise ChainUnavailable(f"RPC endpoint {self.place}: no JSON-RPC answer to {method}")
        return answer

    def _read_refusal(self, method: str, refusal: EndpointRefused) -> dict[str, Any]:
        """Return the JSON-RPC error of an HTTP error response, if it is about the call.

        Raises `EndpointRefused` if it is about the endpoint.
        """
        failure = None
        if refusal.answer is not None:
            failure = read_failure(self.place, method, refusal.answer["error"])
            is_range = isinstance(failure, RangeRefused) and failure.is_certain
            if is_range or isinstance(failure, (CallReverted, EndpointLags, StatePruned)):
                return dict(refusal.answer)
        raise EndpointRefused(
            f"RPC endpoint {self.place}: {refusal.message} at {method}",
            details=failure.details if isinstance(failure, ChainUnavailable) else None,
            retry_after_s=refusal.retry_after_s,
            is_general=refusal.is_general or isinstance(failure, EndpointRefused),
        ) from None

    def _begin_cooldown(
        self, why: ChainUnavailable, *, least_s: float = 0.0, retry_after_s: float = 0.0
    ) -> None:
        """Let the endpoint rest; only its first failure in a row is logged."""
        if not self.cooldown.failures:
            _log.warning("rpc.failed", endpoint=self.place, error=why.message)
        now = asyncio.get_running_loop().time()
        self.cooldown.begin(now, least_s=least_s, retry_after_s=retry_after_s)


def _import_web3() -> Any:
    transport = import_ethereum("gateway.chain.transport")
    # Encodes transactions; otherwise the first sale would wait for the import.
    import_ethereum("rlp")
    return transport.KeepAliveProvider


@attrs.define(eq=False, slots=False, repr=False)
class RpcEndpoints:
    """The configured endpoints, in the operator's order."""

    _urls: Sequence[str]
    _timeout_s: float = attrs.field(kw_only=True)
    _checks: Sequence[Check] = attrs.field(kw_only=True)
    _timing: RetryTiming = attrs.field(kw_only=True)
    _budget: RetryBudget = attrs.field(factory=RetryBudget, init=False)
    _endpoints: list[Endpoint] = attrs.field(factory=list, init=False)
    _connecting: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)
    _calls: set[asyncio.Task[Any]] = attrs.field(factory=set, init=False)

    async def connect(self) -> list[Endpoint]:
        """Return the endpoints; the first call imports web3 and creates them."""
        async with self._connecting:
            if self._is_closed:
                raise ChainUnavailable("The gateway is stopping.")
            if not self._endpoints:
                provider = await asyncio.to_thread(_import_web3)
                self._endpoints = [
                    Endpoint(
                        place=place,
                        provider=provider(url),
                        timeout_s=self._timeout_s,
                        cooldown=Cooldown(self._timing),
                    )
                    for place, url in enumerate(self._urls, start=1)
                ]
        return self._endpoints

    async def close(self) -> None:
        """Close the connections for good."""
        async with self._connecting:
            self._is_closed = True
            for call in self._calls:
                call.cancel()
            for endpoint in self._endpoints:
                await endpoint.provider.disconnect()

    async def renew(self) -> None:
        """Open new connections for later calls. Calls in progress are sent again on them."""
        async with self._connecting:
            if not self._is_closed:
                for endpoint in self._endpoints:
                    await endpoint.provider.renew()

    def logs_limit(self) -> int | None:
        """Return the smallest known block limit of log queries; None without one."""
        limits = [endpoint.logs.limit for endpoint in self._endpoints]
        return min((limit for limit in limits if limit is not None), default=None)

    def server_times(self) -> list[float]:
        """Return the clocks of the endpoints that send theirs, in Unix seconds."""
        times = [endpoint.provider.server_time() for endpoint in self._endpoints]
        return [time for time in times if time is not None]

    async def ask_in_order(
        self,
        ask: Callable[[Endpoint], Awaitable[Answer]],
        *,
        is_final: Callable[[Answer], bool] = lambda _: True,
        within_s: float | None = None,
    ) -> Answer:
        """Try the endpoints in order and return the first final answer, else the last one.

        Refused calls are retried for `within_s`, by default the timeout of one call.
        Raises `ChainUnavailable` if none answers: a timeout is not "not found". A `CallReverted` is
        an answer.
        """

        async def ask_each() -> Answer:
            answers, failures = [], []
            for endpoint in self._in_order():
                try:
                    answers.append(await self._ask_checked(endpoint, ask))
                except ChainUnavailable as error:
                    failures.append(error)
                    _log_failure(endpoint, error)
                    continue
                if is_final(answers[-1]):
                    break
            if not answers:
                raise _unavailable(failures)
            return answers[-1]

        return await self._retry(ask_each, await self.connect(), within_s=within_s)

    async def ask_until_found(
        self, ask: Callable[[Endpoint], Awaitable[list[Found]]]
    ) -> list[Found]:
        """Try the endpoints in order and return the first list that is not empty.

        An endpoint's index may lag or have a hole, so an empty list is returned only if every
        endpoint gave one. Raises `ChainUnavailable` if one failed and none found anything.
        """

        async def ask_each() -> list[Found]:
            failures = []
            for endpoint in self._in_order():
                try:
                    if found := await self._ask_checked(endpoint, ask):
                        return found
                except ChainUnavailable as error:
                    failures.append(error)
                    _log_failure(endpoint, error)
            if failures:
                raise _unavailable(failures)
            return []

        return await self._retry(ask_each, await self.connect())

    async def ask_everywhere(self, ask: Callable[[Endpoint], Awaitable[Answer]]) -> Answer:
        """Ask all endpoints concurrently, even resting ones, and return the first answer.

        The other calls continue in the background.
        Raises `ChainUnavailable` if no endpoint answers. A `CallReverted` is an answer.
        """
        asked = self._begin_calls(await self.connect(), ask)
        details = None
        for answer in asyncio.as_completed(asked):
            try:
                return await answer
            except ChainUnavailable as error:
                details = error.details or error.message
        raise ChainUnavailable(UNREACHABLE, details=details)

    async def ask_all(self, ask: Callable[[Endpoint], Awaitable[Answer]]) -> list[Answer]:
        """Ask all endpoints concurrently and return their answers, in the operator's order.

        Endpoints that do not answer are left out. Raises `ChainUnavailable` if none answers.
        """
        asked = self._begin_calls(await self.connect(), ask)
        found = await asyncio.gather(*asked, return_exceptions=True)
        answers = [answer for answer in found if not isinstance(answer, BaseException)]
        if not answers:
            raise _unavailable([error for error in found if isinstance(error, ChainUnavailable)])
        return answers

    def _begin_calls(
        self, endpoints: Sequence[Endpoint], ask: Callable[[Endpoint], Awaitable[Answer]]
    ) -> list[asyncio.Task[Answer]]:
        asked = [
            asyncio.create_task(self._ask_briefly(endpoint, ask), name=f"rpc-{endpoint.place}")
            for endpoint in endpoints
        ]
        for call in asked:
            self._calls.add(call)
            call.add_done_callback(self._forget_call)
        return asked

    async def _ask_briefly(
        self, endpoint: Endpoint, ask: Callable[[Endpoint], Awaitable[Answer]]
    ) -> Answer:
        """Ask one endpoint even while it rests, with brief retries."""
        within_s = min(_BROADCAST_S, self._timeout_s)
        return await self._retry(lambda: self._ask_checked(endpoint, ask), (), within_s=within_s)

    async def _retry(
        self,
        ask: Callable[[], Awaitable[Answer]],
        endpoints: Sequence[Endpoint],
        *,
        within_s: float | None = None,
    ) -> Answer:
        """Retry while the call is refused, but not while all endpoints asked for a pause.

        `within_s`: seconds, by default the timeout of one call.
        """
        if within_s is None:
            within_s = self._timeout_s

        def retry_after_s() -> float:
            now = asyncio.get_running_loop().time()
            return max(0.0, min((one.cooldown.retry_after - now for one in endpoints), default=0.0))

        return await retry_refused(
            ask,
            within_s=within_s,
            retry_after_s=retry_after_s,
            budget=self._budget,
            timing=self._timing,
        )

    def _in_order(self) -> list[Endpoint]:
        """Return the endpoints to try, in the operator's order, resting ones last.

        Endpoints that asked for a pause are left out, unless all of them did.
        """
        now = asyncio.get_running_loop().time()
        available = [one for one in self._endpoints if one.cooldown.retry_after <= now]
        return sorted(available or self._endpoints, key=lambda one: one.cooldown.until > now)

    def _forget_call(self, call: asyncio.Task[Any]) -> None:
        """Drop a finished call, and log its error: its caller may be gone."""
        self._calls.discard(call)
        if not call.cancelled() and isinstance(call.exception(), ChainUnavailable):
            _log.warning("rpc.failed", endpoint=call.get_name(), error=str(call.exception()))

    async def _ask_checked(
        self, endpoint: Endpoint, ask: Callable[[Endpoint], Awaitable[Answer]]
    ) -> Answer:
        """Ask an endpoint, after any check that it has not passed yet.

        A malformed response raises `ChainUnavailable`, too.
        """
        try:
            for number, check in enumerate(self._checks, start=1):
                if endpoint.checks_passed < number:
                    await check(endpoint)
                    endpoint.checks_passed = max(endpoint.checks_passed, number)
            return await ask(endpoint)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            kind = type(error).__name__
            raise ChainUnavailable(f"RPC endpoint {endpoint.place}: malformed ({kind})") from None


def _log_failure(endpoint: Endpoint, error: ChainUnavailable) -> None:
    """Log a failure, unless `_begin_cooldown` has logged it, or it is usual for the endpoint."""
    if not endpoint.cooldown.failures and not isinstance(error, StatePruned):
        _log.warning("rpc.failed", endpoint=endpoint.place, error=error.message)


def _unavailable(failures: Sequence[ChainUnavailable]) -> ChainUnavailable:
    """Return the error for a call that no endpoint answered; `EndpointRefused` is retried."""
    if narrow := [error for error in failures if isinstance(error, LogsTooNarrow)]:
        return narrow[0]
    if failures and all(isinstance(error, StatePruned) for error in failures):
        return failures[0]
    details = failures[-1].details or failures[-1].message if failures else None
    if any(isinstance(error, EndpointRefused) for error in failures):
        return EndpointRefused(UNREACHABLE, details=details)
    return ChainUnavailable(UNREACHABLE, details=details)
