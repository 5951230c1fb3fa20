"""The requests in progress, and the last one that counts as use."""

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus

import attrs

_READS = ("GET", "HEAD", "OPTIONS")
_PRICE = HTTPStatus.PAYMENT_REQUIRED


@attrs.define(eq=False, repr=False)
class Requests:
    """Counts requests, so that a plugin can end an idle process."""

    # Monotonic: a change of the machine's time is no idleness, and hides none.
    clock: Callable[[], float] = time.monotonic
    # Requests without a complete answer, event streams included.
    open: int = attrs.field(default=0, init=False)
    # Requests that may become use, and the time of the last use, or of the start (by `clock`).
    begun: int = attrs.field(default=0, init=False)
    used_at: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.used_at = self.clock()

    @property
    def idle_s(self) -> float:
        """Seconds since the last use, or since the start."""
        return self.clock() - self.used_at

    def begin(self, method: str, headers: Mapping[bytes, bytes]) -> bool:
        """Note a request; return whether it may count as use.

        A read may if a person opened a page with it. Others may be polls, health checks or
        crawlers, which would keep a process awake forever.
        """
        self.open += 1
        may_be_use = method not in _READS or headers.get(b"sec-fetch-mode") == b"navigate"
        self.begun += may_be_use
        return may_be_use

    def end(self, status: int | None = None) -> None:
        """Note the end of an answer; name its status if the request may count as use.

        A refused request is no use: a scanner's would keep a process awake. A price is.
        """
        self.open -= 1
        if status is not None and (status < HTTPStatus.BAD_REQUEST or status == _PRICE):
            self.used_at = self.clock()

    async def find_pending(self) -> list[str]:
        """Return `requests` while one is in progress."""
        return ["requests"] if self.open else []
