"""JSON-RPC over several endpoints: each is checked once, then they are tried in order.

An endpoint that is silent, refuses or makes no sense is passed over for the next. One that
refuses rests for a while, and the call is made again where none has answered (`retrying`); only
then is the chain unavailable. web3 is imported at the first call, in a thread: the import takes
most of a second, and the server answers before that.
"""

import asyncio
import importlib
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import attrs
import structlog

from gateway.chain.retries import EndpointRefused, Rest, RetryBudget, retried
from gateway.contracts import CallReverted
from gateway.errors import ChainUnavailable

Answer = TypeVar("Answer")
Check = Callable[["Endpoint"], Awaitable[None]]

_REVERTED = 3  # JSON-RPC error code of geth for "execution reverted"
_MAY_REVERT = ("eth_call", "eth_sendRawTransaction")  # other methods run no contract
# A broadcast holds the key that signed it, and with it every other payment; its driver sends again.
_BROADCAST_S = 0.5
_SILENT = "The chain does not answer now. Nothing was charged; try again."
_log = structlog.get_logger()


@attrs.define
class Endpoint:
    """One RPC address; its URL may hold a key, so it is logged by its place in the list."""

    place: int
    provider: Any = attrs.field(repr=False)
    timeout_s: float
    checks_passed: int = 0
    rest: Rest = attrs.field(factory=Rest)

    async def request(self, method: str, *params: Any) -> Any:
        """Return a call's result.

        Raises `CallReverted` where the contract refused, `EndpointRefused` where the endpoint
        did, `ChainUnavailable` for everything else.
        """
        try:
            answer = await self._answer(method, params)
        except EndpointRefused as refusal:
            self._rest(refusal, wished_s=refusal.retry_after_s)
            raise
        except ChainUnavailable as silence:
            self._rest(silence, least_s=self.timeout_s)
            raise
        if answer.get("error") is not None:
            failure = _failure(self.place, method, answer["error"])
            if isinstance(failure, EndpointRefused):
                self._rest(failure)
            elif isinstance(failure, CallReverted):
                self.rest.end()
            raise failure
        self.rest.end()
        return answer["result"]

    async def _answer(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self.timeout_s):
                answer = await self.provider.make_request(method, list(params))
        except EndpointRefused as error:
            raise EndpointRefused(
                f"RPC endpoint {self.place}: {error.message} at {method}",
                retry_after_s=error.retry_after_s,
            ) from None
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is this endpoint's silence
            kind = type(error).__name__
            raise ChainUnavailable(f"RPC endpoint {self.place}: {kind} at {method}") from None
        if not isinstance(answer, dict) or ("error" not in answer and "result" not in answer):
            raise ChainUnavailable(f"RPC endpoint {self.place}: no JSON-RPC answer to {method}")
        return answer

    def _rest(self, why: ChainUnavailable, *, least_s: float = 0.0, wished_s: float = 0.0) -> None:
        """Leave the endpoint alone for a while; only its first failure in a row is logged."""
        if not self.rest.failures:
            _log.warning("rpc.failed", endpoint=self.place, error=why.message)
        now = asyncio.get_running_loop().time()
        self.rest.begin(now, least_s=least_s, wished_s=wished_s)


# What nodes say of a call that fails without a revert: geth, reth, Nethermind.
_FAILED_CALL = re.compile(
    r"out of gas|invalid opcode|invalid jump destination|stack (under|over)flow|stack limit reached"
    r"|write protection|return data out of bounds|evm error|vm execution error",
    re.IGNORECASE,
)
# What vendors say with status 200 where a key or an address has asked too often.
_BUSY_CODES = (429, -32005, -32016, -32029)
_BUSY = re.compile(r"rate.?limit|too many requests|capacity exceeded|throttl", re.IGNORECASE)


def _failure(place: int, method: str, error: Any) -> Exception:
    message = str(error.get("message", "")) if isinstance(error, dict) else str(error)
    code = error.get("code") if isinstance(error, dict) else None
    is_reverted = code == _REVERTED or "revert" in message.lower()
    is_failed_call = method == "eth_call" and _FAILED_CALL.search(message) is not None
    if (is_reverted and method in _MAY_REVERT) or is_failed_call:
        return CallReverted(message)
    if code in _BUSY_CODES or _BUSY.search(message):
        message = message[:200]
        return EndpointRefused(f"RPC endpoint {place}: refuses {method} for now", details=message)
    return ChainUnavailable(f"RPC endpoint {place}: {method} failed", details=message[:200])


def _import_web3() -> Any:
    """Import web3 and return our provider; of its dependencies py_ecc raises the recursion limit.

    Under its limit of 100,000 a body of 100 KB of `[` would end the process, so it is put back.
    """
    limit = sys.getrecursionlimit()
    ours = importlib.import_module("gateway.chain.transport")
    importlib.import_module("eth_account")
    sys.setrecursionlimit(limit)
    return ours.KeepAliveProvider


class RpcEndpoints:
    """The configured endpoints, in the operator's order."""

    def __init__(self, urls: Sequence[str], *, timeout_s: float, checks: Sequence[Check]) -> None:
        self._urls = urls
        self._timeout_s = timeout_s
        self._checks = checks
        self._budget = RetryBudget()
        self._endpoints: list[Endpoint] = []
        self._connecting = asyncio.Lock()
        self._is_closed = False
        self._asking: set[asyncio.Task[Any]] = set()

    async def connect(self) -> list[Endpoint]:
        """Return the endpoints, importing web3 where that has not happened yet."""
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
                    )
                    for place, url in enumerate(self._urls, start=1)
                ]
        return self._endpoints

    async def close(self) -> None:
        """Close the connections; none is opened any more."""
        async with self._connecting:
            self._is_closed = True
            for question in self._asking:
                question.cancel()
            for endpoint in self._endpoints:
                await endpoint.provider.disconnect()

    async def first(self, ask: Callable[[Endpoint], Awaitable[Answer]]) -> Answer:
        """Return the first endpoint's answer that is one.

        Raises `ChainUnavailable` where none has one; a `CallReverted` is an answer.
        """

        async def once() -> Answer:
            failures = []
            for endpoint in self._in_order():
                try:
                    return await self._ask(endpoint, ask)
                except ChainUnavailable as error:
                    failures.append(_noted(endpoint, error))
            raise _silence(failures)

        return await self._retried(once, await self.connect())

    async def first_known(
        self, ask: Callable[[Endpoint], Awaitable[Answer | None]]
    ) -> Answer | None:
        """Return the first answer that is not None; None where some answered and none knows.

        Raises `ChainUnavailable` where none answered: silence is not "not found".
        """

        async def once() -> Answer | None:
            answered, failures = False, []
            for endpoint in self._in_order():
                try:
                    answer = await self._ask(endpoint, ask)
                except ChainUnavailable as error:
                    failures.append(_noted(endpoint, error))
                    continue
                answered = True
                if answer is not None:
                    return answer
            if not answered:
                raise _silence(failures)
            return None

        return await self._retried(once, await self.connect())

    async def everywhere(self, ask: Callable[[Endpoint], Awaitable[Answer]]) -> Answer:
        """Ask every endpoint at once and return the first answer; the others are still asked.

        Also those that rest: what is asked everywhere is worth more than their peace.
        Raises `ChainUnavailable` where none has one; a `CallReverted` is an answer.
        """
        asked = self._ask_all(await self.connect(), ask)
        details = None
        for answer in asyncio.as_completed(asked):
            try:
                return await answer
            except ChainUnavailable as error:
                details = error.details or error.message
        raise ChainUnavailable(_SILENT, details=details)

    async def answers(self, ask: Callable[[Endpoint], Awaitable[Answer]]) -> list[Answer]:
        """Ask every endpoint at once and return what was answered, in the operator's order.

        Raises `ChainUnavailable` where none answered.
        """
        asked = self._ask_all(await self.connect(), ask)
        found = await asyncio.gather(*asked, return_exceptions=True)
        answers = [answer for answer in found if not isinstance(answer, BaseException)]
        if not answers:
            raise _silence([error for error in found if isinstance(error, ChainUnavailable)])
        return answers

    def _ask_all(
        self, endpoints: Sequence[Endpoint], ask: Callable[[Endpoint], Awaitable[Answer]]
    ) -> list[asyncio.Task[Answer]]:
        asked = [
            asyncio.create_task(self._ask_one(endpoint, ask), name=f"rpc-{endpoint.place}")
            for endpoint in endpoints
        ]
        for question in asked:
            self._asking.add(question)
            question.add_done_callback(self._asked)
        return asked

    async def _ask_one(
        self, endpoint: Endpoint, ask: Callable[[Endpoint], Awaitable[Answer]]
    ) -> Answer:
        """Ask one endpoint, again for a moment where it refuses, without a look at its rest."""
        within_s = min(_BROADCAST_S, self._timeout_s)
        return await self._retried(lambda: self._ask(endpoint, ask), (), within_s=within_s)

    async def _retried(
        self,
        once: Callable[[], Awaitable[Answer]],
        endpoints: Sequence[Endpoint],
        *,
        within_s: float | None = None,
    ) -> Answer:
        """Ask again while it is refused; not while all of these endpoints asked for a rest."""
        if within_s is None:
            within_s = self._timeout_s

        def wished_s() -> float:
            now = asyncio.get_running_loop().time()
            return max(0.0, min((one.rest.wished_until - now for one in endpoints), default=0.0))

        return await retried(once, within_s=within_s, wished_s=wished_s, budget=self._budget)

    def _in_order(self) -> list[Endpoint]:
        """Return who may be asked: first those that do not rest, in the operator's order.

        One that asked for its rest is left out while another is there.
        """
        now = asyncio.get_running_loop().time()
        awake = [one for one in self._endpoints if one.rest.wished_until <= now]
        return sorted(awake or self._endpoints, key=lambda one: one.rest.until > now)

    def _asked(self, question: asyncio.Task[Any]) -> None:
        """Forget a question that was asked everywhere, and look at its error: nobody else may."""
        self._asking.discard(question)
        if not question.cancelled() and isinstance(question.exception(), ChainUnavailable):
            _log.warning(
                "rpc.failed", endpoint=question.get_name(), error=str(question.exception())
            )

    async def _ask(
        self, endpoint: Endpoint, ask: Callable[[Endpoint], Awaitable[Answer]]
    ) -> Answer:
        """Ask an endpoint; before its first use it is checked, and no check is made twice."""
        try:
            for place, check in enumerate(self._checks, start=1):
                if endpoint.checks_passed < place:
                    await check(endpoint)
                    endpoint.checks_passed = max(endpoint.checks_passed, place)
            return await ask(endpoint)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            kind = type(error).__name__
            raise ChainUnavailable(f"RPC endpoint {endpoint.place}: malformed ({kind})") from None


def _noted(endpoint: Endpoint, error: ChainUnavailable) -> ChainUnavailable:
    """Log a failure, unless it made the endpoint rest: then it is logged already."""
    if not endpoint.rest.failures:
        _log.warning("rpc.failed", endpoint=endpoint.place, error=error.message)
    return error


def _silence(failures: Sequence[ChainUnavailable]) -> ChainUnavailable:
    """Return what it means that none has answered: worth another try where one refused."""
    details = failures[-1].details or failures[-1].message if failures else None
    if any(isinstance(error, EndpointRefused) for error in failures):
        return EndpointRefused(_SILENT, details=details)
    return ChainUnavailable(_SILENT, details=details)
