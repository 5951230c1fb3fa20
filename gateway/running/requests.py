"""The requests in progress, and the last one that counts as use."""

import time
from collections.abc import Callable, Mapping

import attrs

_READS = ("GET", "HEAD", "OPTIONS")


@attrs.define
class Requests:
    """Counts requests, so that a plugin can end an idle process."""

    # Monotonic: a change of the machine's time is no idleness, and hides none.
    clock: Callable[[], float] = time.monotonic
    # Requests without a complete answer, event streams included.
    open: int = attrs.field(default=0, init=False)
    # Requests that count as use, and the time of the last one, or of the start (by `clock`).
    used: int = attrs.field(default=0, init=False)
    used_at: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.used_at = self.clock()

    @property
    def idle_s(self) -> float:
        """Seconds since the last use, or since the start."""
        return self.clock() - self.used_at

    def begin(self, method: str, headers: Mapping[bytes, bytes]) -> bool:
        """Note a request; return whether it counts as use, for `end`.

        A read counts if a person opened a page with it. Others may be polls, health checks or
        crawlers, which would keep a process awake forever.
        """
        self.open += 1
        is_use = method not in _READS or headers.get(b"sec-fetch-mode") == b"navigate"
        if is_use:
            self._note_use()
        return is_use

    def end(self, *, is_use: bool) -> None:
        """Note the end of an answer. A long one was use until now."""
        self.open -= 1
        if is_use:
            self._note_use()

    def _note_use(self) -> None:
        self.used += 1
        self.used_at = self.clock()

    async def find_pending(self) -> list[str]:
        """Return `requests` while one is in progress."""
        return ["requests"] if self.open else []
