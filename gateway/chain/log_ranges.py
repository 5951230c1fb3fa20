"""Log queries split to each endpoint's block limit.

Free plans allow 5, 10 or 500 blocks per query, and refuse more in many ways. A refused range is
split into parts of the size that the refusal names, or else in half.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import attrs

from gateway.chain.retries import LOGS, EndpointRefused, RangeRefused
from gateway.errors import ChainUnavailable

# A learned limit expires: the refusal may have been a temporary fault, and plans change.
_REMEMBERED_S = 3600.0
_ANY = 2**63
# "[0x1f4, 0x3e7]": the range that would work, in some vendors' messages.
_RANGE = re.compile(r"\[\s*0x([0-9a-f]{1,16})\s*,\s*0x([0-9a-f]{1,16})\s*\]", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?<![\w.-])(\d{1,3}(?:[ ,_']\d{3})+|\d{1,9})\s?(k)?\b"
    # Not an amount of time, money or requests.
    r"(?!\s?(?:ms|s|secs?|seconds?|minutes?|rps|requests?|calls?|results?|logs|credits|cu|%)\b)",
    re.IGNORECASE,
)
# A part that a busy endpoint refuses is retried with exponential backoff.
_MAX_MISSES = 6
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 10.0

Request = Callable[..., Awaitable[Any]]


class LogsTooNarrow(ChainUnavailable):
    """An endpoint allows too few blocks per query for a search."""


@attrs.define(eq=False, repr=False)
class LogRange:
    """The learned limit of blocks per log query at one endpoint."""

    place: int
    _most_blocks: int | None = None
    _until: float = 0.0
    # Whether a query over this many blocks succeeded.
    _is_proven: bool = False
    # Long searches run one at a time.
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

        The newest blocks are searched first; `until_found` stops at the first part with logs.
        Raises `LogsTooNarrow` if more than `most_queries` are needed, at once unless one of the
        first may find something, and as `request` does.
        """
        found: list[Any] = []
        details: str | None = None
        needed, left = -(-(last - first + 1) // most_queries), most_queries
        while first <= last and not (until_found and found):
            size = self.limit or _ANY
            if not left or (not until_found and last - first >= size * left):
                raise self._too_narrow(size, needed, details)
            begin = max(first, last - size + 1)
            where = {"fromBlock": hex(begin), "toBlock": hex(last)}
            try:
                found = [*await request(LOGS, query | where), *found]
            except RangeRefused as refusal:
                details = refusal.details
                self._shrink(refusal, last - begin + 1)
                continue
            self._is_proven = True
            last, left = begin - 1, left - 1
        return found

    async def read_long(self, request: Request, query: dict[str, Any], **search: Any) -> list[Any]:
        """Like `read`, with retries, one such search at a time per endpoint."""
        async with self._long:
            return await self.read(partial(_retry_busy, request), query, **search)

    @property
    def limit(self) -> int | None:
        """Blocks per query; None if no query was refused recently."""
        return self._most_blocks if time.monotonic() < self._until else None

    def _shrink(self, refusal: RangeRefused, refused: int) -> None:
        """Learn a smaller limit; re-raise the refusal of a single block."""
        if refused == 1:
            self._forget()
            raise refusal
        half = refused // 2
        named = [each for each in _named_sizes(refusal.details or "") if 0 < each <= half]
        # A concurrent search may have learned a smaller one.
        self._most_blocks = min(max(named, default=half), self.limit or _ANY)
        self._until = time.monotonic() + _REMEMBERED_S
        self._is_proven = False

    def _forget(self) -> None:
        self._most_blocks, self._is_proven = None, False

    def _too_narrow(self, size: int, needed: int, details: str | None) -> LogsTooNarrow:
        if not self._is_proven:
            self._forget()
        return LogsTooNarrow(
            f"RPC endpoint {self.place} answers for the logs of {size:,} blocks at once, and this "
            f"search needs {needed:,}. Name another endpoint in GATEWAY_RPC_URLS.",
            details=details,
        )


async def _retry_busy(request: Request, method: str, query: dict[str, Any]) -> Any:
    """Retry while the endpoint is busy, or the whole search would start over."""
    for miss in range(_MAX_MISSES):
        try:
            return await request(method, query)
        except EndpointRefused as refusal:
            pause_s = max(_FIRST_PAUSE_S * 2**miss, refusal.retry_after_s)
            await asyncio.sleep(min(pause_s, _LONGEST_PAUSE_S))
    return await request(method, query)


def _named_sizes(details: str) -> Iterator[int]:
    """Yield the block counts that a refusal may name: "500", "10,000", "2K", "[0x1, 0xa]"."""
    for begin, end in _RANGE.findall(details):
        yield int(end, 16) - int(begin, 16) + 1
    for number, thousands in _NUMBER.findall(details):
        yield int(re.sub(r"\D", "", number)) * (1_000 if thousands else 1)
