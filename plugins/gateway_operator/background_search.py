"""A search of the chain that goes on in the background, and whose last result is kept."""

import asyncio

import structlog

from gateway.contracts import Chain, Clock
from gateway.errors import ChainUnavailable
from gateway.store import SqlStore

# A search result is fresh for this many seconds.
_TTL_S = 60.0
_log = structlog.get_logger()


class BackgroundSearch:
    """Runs `_advance` at most once at a time. After an error, the last result stays."""

    name = "search"
    ttl_s = _TTL_S

    def __init__(self, chain: Chain, store: SqlStore, now: Clock) -> None:
        self._chain, self._store, self._now = chain, store, now
        # Unix seconds of the last completed search.
        self.searched_at: float | None = None
        # Unix seconds of the last search if it failed.
        self.failed_at: float | None = None
        self.problem: str | None = None
        self._search: asyncio.Task[None] | None = None

    async def refresh(self, timeout_s: float) -> None:
        """Search new blocks unless the last search is recent; wait at most `timeout_s`.

        A longer search goes on in the background. If it fails, `problem` is set.
        """
        ended_at = self.searched_at if self.problem is None else self.failed_at
        if ended_at is not None and self._now() - ended_at < self.ttl_s:
            return
        if self._search is None or self._search.done():
            self._search = asyncio.create_task(self._try_advance(), name=self.name)
        await asyncio.wait({self._search}, timeout=timeout_s)

    async def close(self) -> None:
        """Cancel a running search."""
        if self._search is not None:
            self._search.cancel()
            await asyncio.gather(self._search, return_exceptions=True)

    async def _advance(self) -> None:
        """Search new blocks; raises `ChainUnavailable`."""
        raise NotImplementedError

    async def _try_advance(self) -> None:
        try:
            await self._advance()
        except ChainUnavailable as error:
            self.problem, self.failed_at = error.message, self._now()
        except Exception:  # noqa: BLE001 - the edge of a task that is not awaited
            _log.exception("transfers.search_failed", search=self.name)
            self.problem = "The search has failed; the gateway's log says why."
            self.failed_at = self._now()
        else:
            self.problem, self.searched_at = None, self._now()
