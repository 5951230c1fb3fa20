"""JSON-RPC over several endpoints: each is checked once, then they are tried in order.

An endpoint that is silent, refuses or makes no sense is passed over for the next; only when
none is left is the chain unavailable. web3 is imported at the first call, in a thread: the
import takes most of a second, and the server answers before that.
"""

import asyncio
import importlib
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import attrs
import structlog

from gateway.contracts import CallReverted
from gateway.errors import ChainUnavailable

Answer = TypeVar("Answer")
Check = Callable[["Endpoint"], Awaitable[None]]

_REVERTED = 3  # JSON-RPC error code of geth for "execution reverted"
_MAY_REVERT = ("eth_call", "eth_sendRawTransaction")  # other methods run no contract
_SILENT = "The chain does not answer now. Nothing was charged; try again."
_log = structlog.get_logger()


@attrs.define
class Endpoint:
    """One RPC address; its URL may hold a key, so it is logged by its place in the list."""

    place: int
    provider: Any = attrs.field(repr=False)
    timeout_s: float
    is_checked: bool = False

    async def request(self, method: str, *params: Any) -> Any:
        """Return a call's result.

        Raises `CallReverted` where the contract refused, `ChainUnavailable` for everything else.
        """
        try:
            async with asyncio.timeout(self.timeout_s):
                answer = await self.provider.make_request(method, list(params))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is this endpoint's silence
            kind = type(error).__name__
            raise ChainUnavailable(f"RPC endpoint {self.place}: {kind} at {method}") from None
        if not isinstance(answer, dict) or ("error" not in answer and "result" not in answer):
            raise ChainUnavailable(f"RPC endpoint {self.place}: no JSON-RPC answer to {method}")
        if answer.get("error") is not None:
            raise _failure(self.place, method, answer["error"])
        return answer["result"]


# What nodes say of a call that fails without a revert: geth, reth, Nethermind.
_FAILED_CALL = re.compile(
    r"out of gas|invalid opcode|invalid jump destination|stack (under|over)flow|stack limit reached"
    r"|write protection|return data out of bounds|evm error|vm execution error",
    re.IGNORECASE,
)


def _failure(place: int, method: str, error: Any) -> Exception:
    message = str(error.get("message", "")) if isinstance(error, dict) else str(error)
    code = error.get("code") if isinstance(error, dict) else None
    is_reverted = code == _REVERTED or "revert" in message.lower()
    is_failed_call = method == "eth_call" and _FAILED_CALL.search(message) is not None
    if (is_reverted and method in _MAY_REVERT) or is_failed_call:
        return CallReverted(message)
    return ChainUnavailable(f"RPC endpoint {place}: {method} failed", details=message[:200])


def _import_web3() -> Any:
    """Import web3 and return our provider; of its dependencies py_ecc raises the recursion limit.

    Under its limit of 100,000 a body of 100 KB of `[` would end the process, so it is put back.
    """
    limit = sys.getrecursionlimit()
    ours = importlib.import_module("gateway.chain.provider")
    importlib.import_module("eth_account")
    sys.setrecursionlimit(limit)
    return ours.KeepAliveProvider


class RpcEndpoints:
    """The configured endpoints, in the operator's order."""

    def __init__(self, urls: Sequence[str], *, timeout_s: float, check: Check) -> None:
        self._urls = urls
        self._timeout_s = timeout_s
        self._check = check
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
        details = None
        for endpoint in await self.connect():
            try:
                return await self._ask(endpoint, ask)
            except ChainUnavailable as error:
                _log.warning("rpc.failed", endpoint=endpoint.place, error=error.message)
                details = error.details or error.message
        raise ChainUnavailable(_SILENT, details=details)

    async def first_known(
        self, ask: Callable[[Endpoint], Awaitable[Answer | None]]
    ) -> Answer | None:
        """Return the first answer that is not None; None where some answered and none knows.

        Raises `ChainUnavailable` where none answered: silence is not "not found".
        """
        answered = False
        for endpoint in await self.connect():
            try:
                answer = await self._ask(endpoint, ask)
            except ChainUnavailable as error:
                _log.warning("rpc.failed", endpoint=endpoint.place, error=error.message)
                continue
            answered = True
            if answer is not None:
                return answer
        if not answered:
            raise ChainUnavailable(_SILENT)
        return None

    async def everywhere(self, ask: Callable[[Endpoint], Awaitable[Answer]]) -> Answer:
        """Ask every endpoint at once and return the first answer; the others are still asked.

        Raises `ChainUnavailable` where none has one; a `CallReverted` is an answer.
        """
        asked = [
            asyncio.create_task(self._ask(endpoint, ask), name=f"rpc-{endpoint.place}")
            for endpoint in await self.connect()
        ]
        for question in asked:
            self._asking.add(question)
            question.add_done_callback(self._asked)
        details = None
        for answer in asyncio.as_completed(asked):
            try:
                return await answer
            except ChainUnavailable as error:
                details = error.details or error.message
        raise ChainUnavailable(_SILENT, details=details)

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
        try:
            if not endpoint.is_checked:
                await self._check(endpoint)
                endpoint.is_checked = True
            return await ask(endpoint)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            kind = type(error).__name__
            raise ChainUnavailable(f"RPC endpoint {endpoint.place}: malformed ({kind})") from None
