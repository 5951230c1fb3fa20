"""Queries of logs over as many blocks as an endpoint answers for.

Free plans answer for 5, 10 or 500 blocks at once, and refuse more in many ways. What was refused is
asked again in parts: of the size that the refusal names, or else of half the blocks.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import attrs

from gateway.chain.failures import LOGS, RangeRefused
from gateway.chain.retries import EndpointRefused
from gateway.errors import ChainUnavailable

# A refusal may have been a passing fault, and plans change.
_REMEMBERED_S = 3600.0
_ANY = 2**63
# "[0x1f4, 0x3e7]": the range that would work, as some vendors name it.
_RANGE = re.compile(r"\[\s*0x([0-9a-f]{1,16})\s*,\s*0x([0-9a-f]{1,16})\s*\]", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?<![\w.-])(\d{1,3}(?:[ ,_']\d{3})+|\d{1,9})\s?(k)?\b"
    # Not of time, money or requests.
    r"(?!\s?(?:ms|s|secs?|seconds?|minutes?|rps|requests?|calls?|results?|logs|credits|cu|%)\b)",
    re.IGNORECASE,
)
# A part that a busy endpoint refuses is asked for again, after pauses that double.
_MOST_MISSES = 6
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 10.0

Request = Callable[..., Awaitable[Any]]


class LogsTooNarrow(ChainUnavailable):
    """An endpoint answers for too few blocks at once to search as many as are needed."""


@attrs.define
class LogRange:
    """For how many blocks one endpoint answers a query of logs."""

    place: int
    _most_blocks: int | None = None
    _until: float = 0.0
    # Whether a query over this many blocks succeeded.
    _is_proven: bool = False
    # One search at a time needs many queries.
    _long: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def read(
        self,
        request: Request,
        query: dict[str, Any],
        *,
        first: int,
        last: int,
        most_queries: int,
        until_found: bool = False,
    ) -> list[Any]:
        """Return the logs of the blocks from `first` to `last`, oldest first.

        The newest blocks are asked for first; `until_found` ends at the first part that has logs.
        Raises `LogsTooNarrow` where more than `most_queries` are needed, and as `request` does.
        """
        found: list[Any] = []
        words: str | None = None
        while first <= last and not (until_found and found):
            size = self.limit or _ANY
            if last - first >= size * most_queries:
                raise self._too_narrow(size, -(-(last - first + 1) // most_queries), words)
            begin = max(first, last - size + 1)
            where = {"fromBlock": hex(begin), "toBlock": hex(last)}
            try:
                found = [*await request(LOGS, query | where), *found]
            except RangeRefused as refusal:
                words = refusal.details
                self._shrink(refusal, last - begin + 1)
                continue
            self._is_proven = True
            last = begin - 1
        return found

    async def read_long(self, request: Request, query: dict[str, Any], **search: Any) -> list[Any]:
        """Return what `read` does, with patience, while no other long search asks this endpoint."""
        async with self._long:
            return await self.read(partial(_ask_patiently, request), query, **search)

    @property
    def limit(self) -> int | None:
        """For how many blocks to ask at once; None if no query was refused lately."""
        return self._most_blocks if time.monotonic() < self._until else None

    def _shrink(self, refusal: RangeRefused, refused: int) -> None:
        """Remember a smaller size than was refused; raise the refusal of a single block."""
        if refused == 1:
            self._forget()
            raise refusal
        half = refused // 2
        named = [each for each in _named_sizes(refusal.details or "") if 0 < each <= half]
        # Another search may have learned a smaller one.
        self._most_blocks = min(max(named, default=half), self.limit or _ANY)
        self._until = time.monotonic() + _REMEMBERED_S
        self._is_proven = False

    def _forget(self) -> None:
        self._most_blocks, self._is_proven = None, False

    def _too_narrow(self, size: int, needed: int, words: str | None) -> LogsTooNarrow:
        if not self._is_proven:
            self._forget()
        return LogsTooNarrow(
            f"RPC endpoint {self.place} answers for the logs of {size:,} blocks at once, and this "
            f"search needs {needed:,}. Name another endpoint in GATEWAY_RPC_URLS.",
            details=words,
        )


async def _ask_patiently(request: Request, method: str, query: dict[str, Any]) -> Any:
    """Ask again after pauses while the endpoint is busy: otherwise the search would start over."""
    for miss in range(_MOST_MISSES):
        try:
            return await request(method, query)
        except EndpointRefused as refusal:
            pause_s = max(_FIRST_PAUSE_S * 2**miss, refusal.retry_after_s)
            await asyncio.sleep(min(pause_s, _LONGEST_PAUSE_S))
    return await request(method, query)


def _named_sizes(words: str) -> Iterator[int]:
    """Yield the numbers of blocks that a refusal may name: "500", "10,000", "2K", "[0x1, 0xa]"."""
    for begin, end in _RANGE.findall(words):
        yield int(end, 16) - int(begin, 16) + 1
    for number, thousands in _NUMBER.findall(words):
        yield int(re.sub(r"\D", "", number)) * (1_000 if thousands else 1)
