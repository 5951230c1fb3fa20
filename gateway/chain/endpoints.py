"""JSON-RPC over several endpoints: each is checked once, then they are asked in order.

If an endpoint times out, refuses or returns nonsense, the next one is asked, and this one rests for
a while. If all have failed and one of them refused, the call is retried (`retries`) before the
chain counts as unavailable. web3 is imported at the first call, in a thread: the import takes most
of a second, and the server answers before that.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import attrs
import structlog

from gateway.chain.failures import RangeRefused, read_failure
from gateway.chain.log_ranges import LogRange, LogsTooNarrow
from gateway.chain.retries import (
    SILENT,
    EndpointLags,
    EndpointRefused,
    Rest,
    RetryBudget,
    RetryTiming,
    retry_refused,
)
from gateway.concurrency.late_imports import import_ethereum
from gateway.contracts import CallReverted
from gateway.errors import ChainUnavailable
from gateway.telemetry import signals

Answer = TypeVar("Answer")
Check = Callable[["Endpoint"], Awaitable[None]]

# A refused broadcast is retried for this long; the settlement's driver sends again later.
_BROADCAST_S = 0.5
_log = structlog.get_logger()


@attrs.define
class Endpoint:
    """One RPC address. Its URL may hold a key, so logs name it by its place in the list."""

    place: int
    provider: Any = attrs.field(repr=False)
    timeout_s: float
    checks_passed: int = 0
    rest: Rest = attrs.field(factory=Rest)
    logs: LogRange = attrs.field(init=False)
    _is_failing: bool = attrs.field(default=False, init=False)

    @logs.default
    def _make_logs(self) -> LogRange:
        return LogRange(self.place)

    async def request(self, method: str, *params: Any) -> Any:
        """Return a call's result.

        Raises `CallReverted` if the contract refused, `EndpointRefused` if the endpoint refused,
        and `ChainUnavailable` for everything else.
        """
        result, began_s = "silent", time.perf_counter()
        try:
            answer = await self._request(method, params)
            result = "ok"
        except CallReverted:
            result = "reverted"
            raise
        except EndpointRefused:
            result = "refused"
            raise
        finally:
            seconds = time.perf_counter() - began_s
            signals.rpc_answered.send(
                endpoint=self.place, method=method, result=result, seconds=seconds
            )
            self._note_health(is_failing=result in ("silent", "refused"))
        return answer

    def _note_health(self, *, is_failing: bool) -> None:
        if is_failing or self._is_failing:
            self._is_failing = is_failing
            signals.rpc_failing.send(endpoint=self.place, is_failing=is_failing)

    async def _request(self, method: str, params: Sequence[Any]) -> Any:
        """Return a call's result; the endpoint rests after a failure."""
        try:
            answer = await self._make_request(method, params)
        except EndpointRefused as refusal:
            self._begin_rest(refusal, wished_s=refusal.retry_after_s)
            raise
        except ChainUnavailable as silence:
            self._begin_rest(silence, least_s=self.timeout_s)
            raise
        if answer.get("error") is not None:
            failure = read_failure(self.place, method, answer["error"])
            if isinstance(failure, EndpointRefused) and not isinstance(failure, EndpointLags):
                self._begin_rest(failure)
            elif isinstance(failure, CallReverted):
                self.rest.end()
            raise failure
        self.rest.end()
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
        """Return the JSON-RPC answer that came with a status of failure, if it is about the call.

        Raises `EndpointRefused` if it is about the endpoint.
        """
        said = None
        if refusal.answer is not None:
            said = read_failure(self.place, method, refusal.answer["error"])
            is_range = isinstance(said, RangeRefused) and said.is_certain
            if is_range or isinstance(said, (CallReverted, EndpointLags)):
                return dict(refusal.answer)
        raise EndpointRefused(
            f"RPC endpoint {self.place}: {refusal.message} at {method}",
            details=said.details if isinstance(said, ChainUnavailable) else None,
            retry_after_s=refusal.retry_after_s,
        ) from None

    def _begin_rest(
        self, why: ChainUnavailable, *, least_s: float = 0.0, wished_s: float = 0.0
    ) -> None:
        """Let the endpoint rest; only its first failure in a row is logged."""
        if not self.rest.failures:
            _log.warning("rpc.failed", endpoint=self.place, error=why.message)
        now = asyncio.get_running_loop().time()
        self.rest.begin(now, least_s=least_s, wished_s=wished_s)


def _import_web3() -> Any:
    """Import web3 and return the class of our provider."""
    transport = import_ethereum("gateway.chain.transport")
    # Encodes transactions. Without this, the first sale would wait for the import.
    import_ethereum("rlp")
    return transport.KeepAliveProvider


class RpcEndpoints:
    """The configured endpoints, in the operator's order."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        timeout_s: float,
        checks: Sequence[Check],
        timing: RetryTiming,
    ) -> None:
        self._urls = urls
        self._timeout_s = timeout_s
        self._checks = checks
        self._timing = timing
        self._budget = RetryBudget()
        self._endpoints: list[Endpoint] = []
        self._connecting = asyncio.Lock()
        self._is_closed = False
        self._asking: set[asyncio.Task[Any]] = set()

    async def connect(self) -> list[Endpoint]:
        """Return the endpoints; the first call imports web3 and makes them."""
        async with self._connecting:
            if self._is_closed:
                raise ChainUnavailable("The gateway is stopping; nothing was charged.")
            if not self._endpoints:
                provider = await asyncio.to_thread(_import_web3)
                self._endpoints = [
                    Endpoint(
                        place=place,
                        provider=provider(url),
                        timeout_s=self._timeout_s,
                        rest=Rest(self._timing),
                    )
                    for place, url in enumerate(self._urls, start=1)
                ]
        return self._endpoints

    async def close(self) -> None:
        """Close the connections, and open no more."""
        async with self._connecting:
            self._is_closed = True
            for question in self._asking:
                question.cancel()
            for endpoint in self._endpoints:
                await endpoint.provider.disconnect()

    def logs_limit(self) -> int | None:
        """Return for how many blocks of logs the narrowest endpoint answers at once; None: any."""
        limits = [endpoint.logs.limit for endpoint in self._endpoints]
        return min((limit for limit in limits if limit is not None), default=None)

    async def ask_in_order(self, ask: Callable[[Endpoint], Awaitable[Answer]]) -> Answer:
        """Ask one endpoint after the other and return the first answer.

        Raises `ChainUnavailable` if no endpoint answers. A `CallReverted` is an answer.
        """

        async def ask_each() -> Answer:
            failures = []
            for endpoint in self._in_order():
                try:
                    return await self._ask_checked(endpoint, ask)
                except ChainUnavailable as error:
                    failures.append(error)
                    _log_failure(endpoint, error)
            raise _unavailable(failures)

        return await self._retry(ask_each, await self.connect())

    async def ask_until_known(
        self, ask: Callable[[Endpoint], Awaitable[Answer | None]]
    ) -> Answer | None:
        """Ask one endpoint after the other and return the first answer that is not None.

        Returns None if an endpoint answered, but all answers are None. Raises `ChainUnavailable` if
        no endpoint answers: a timeout is not "not found".
        """

        async def ask_each() -> Answer | None:
            is_answered, failures = False, []
            for endpoint in self._in_order():
                try:
                    answer = await self._ask_checked(endpoint, ask)
                except ChainUnavailable as error:
                    failures.append(error)
                    _log_failure(endpoint, error)
                    continue
                is_answered = True
                if answer is not None:
                    return answer
            if not is_answered:
                raise _unavailable(failures)
            return None

        return await self._retry(ask_each, await self.connect())

    async def ask_everywhere(self, ask: Callable[[Endpoint], Awaitable[Answer]]) -> Answer:
        """Ask every endpoint at once, also those that rest, and return the first answer.

        The other endpoints are still asked after that.
        Raises `ChainUnavailable` if no endpoint answers. A `CallReverted` is an answer.
        """
        asked = self._begin_asking(await self.connect(), ask)
        details = None
        for answer in asyncio.as_completed(asked):
            try:
                return await answer
            except ChainUnavailable as error:
                details = error.details or error.message
        raise ChainUnavailable(SILENT, details=details)

    async def ask_all(self, ask: Callable[[Endpoint], Awaitable[Answer]]) -> list[Answer]:
        """Ask every endpoint at once and return their answers, in the operator's order.

        Endpoints that do not answer are left out. Raises `ChainUnavailable` if none answers.
        """
        asked = self._begin_asking(await self.connect(), ask)
        found = await asyncio.gather(*asked, return_exceptions=True)
        answers = [answer for answer in found if not isinstance(answer, BaseException)]
        if not answers:
            raise _unavailable([error for error in found if isinstance(error, ChainUnavailable)])
        return answers

    def _begin_asking(
        self, endpoints: Sequence[Endpoint], ask: Callable[[Endpoint], Awaitable[Answer]]
    ) -> list[asyncio.Task[Answer]]:
        asked = [
            asyncio.create_task(self._ask_briefly(endpoint, ask), name=f"rpc-{endpoint.place}")
            for endpoint in endpoints
        ]
        for question in asked:
            self._asking.add(question)
            question.add_done_callback(self._forget_question)
        return asked

    async def _ask_briefly(
        self, endpoint: Endpoint, ask: Callable[[Endpoint], Awaitable[Answer]]
    ) -> Answer:
        """Ask one endpoint even while it rests; if it refuses, retry for a moment only."""
        within_s = min(_BROADCAST_S, self._timeout_s)
        return await self._retry(lambda: self._ask_checked(endpoint, ask), (), within_s=within_s)

    async def _retry(
        self,
        ask: Callable[[], Awaitable[Answer]],
        endpoints: Sequence[Endpoint],
        *,
        within_s: float | None = None,
    ) -> Answer:
        """Ask again while the call is refused, but not while all these endpoints asked for a rest.

        `within_s`: seconds, by default the time-out of one call.
        """
        if within_s is None:
            within_s = self._timeout_s

        def wished_s() -> float:
            now = asyncio.get_running_loop().time()
            return max(0.0, min((one.rest.wished_until - now for one in endpoints), default=0.0))

        return await retry_refused(
            ask, within_s=within_s, wished_s=wished_s, budget=self._budget, timing=self._timing
        )

    def _in_order(self) -> list[Endpoint]:
        """Return the endpoints to ask: those that do not rest come first, in the operator's order.

        An endpoint that asked for its rest is left out, unless all of them did.
        """
        now = asyncio.get_running_loop().time()
        awake = [one for one in self._endpoints if one.rest.wished_until <= now]
        return sorted(awake or self._endpoints, key=lambda one: one.rest.until > now)

    def _forget_question(self, question: asyncio.Task[Any]) -> None:
        """Drop a call that has ended, and log its error: its caller may be gone."""
        self._asking.discard(question)
        if not question.cancelled() and isinstance(question.exception(), ChainUnavailable):
            _log.warning(
                "rpc.failed", endpoint=question.get_name(), error=str(question.exception())
            )

    async def _ask_checked(
        self, endpoint: Endpoint, ask: Callable[[Endpoint], Awaitable[Answer]]
    ) -> Answer:
        """Ask an endpoint, after each check that it has not passed yet.

        Raises `ChainUnavailable` also if the answer is malformed.
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
    """Log a failure, unless it made the endpoint rest: then it is logged already."""
    if not endpoint.rest.failures:
        _log.warning("rpc.failed", endpoint=endpoint.place, error=error.message)


def _unavailable(failures: Sequence[ChainUnavailable]) -> ChainUnavailable:
    """Return the error of a call that no endpoint answered; `EndpointRefused` may be retried."""
    if narrow := [error for error in failures if isinstance(error, LogsTooNarrow)]:
        return narrow[0]
    details = failures[-1].details or failures[-1].message if failures else None
    if any(isinstance(error, EndpointRefused) for error in failures):
        return EndpointRefused(SILENT, details=details)
    return ChainUnavailable(SILENT, details=details)
