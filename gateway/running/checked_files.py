"""Remembers the files that have passed their checks, so that buyers do not wait for them twice.

A buyer asks for the price first and sends the same file again with the payment. The payment would
otherwise wait in one line with files that nobody pays for.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

import attrs

from gateway.domain import GenerationRequest

# As long as a price is valid.
_KEPT_S = 300.0
# Some 300 bytes each.
_MOST = 1000


@attrs.define
class CheckedFiles:
    """Requests with a file that passed, by the address that sent them."""

    _now: Callable[[], float] = time.monotonic
    # When a request was checked, and the pages of its file. The oldest is first.
    _passed: OrderedDict[tuple[str, str], tuple[float, int | None]] = attrs.field(
        factory=OrderedDict, init=False
    )

    def find(self, address: str, slug: str, sent: GenerationRequest) -> GenerationRequest | None:
        """Return the request with its pages counted, or None if it must be checked.

        One client cannot learn by the time of an answer what another one has sent.
        """
        checked_at, pages = self._passed.get((address, sent.fingerprint(slug)), (None, None))
        if checked_at is None or self._now() - checked_at > _KEPT_S:
            return None
        return attrs.evolve(sent, pages=pages)

    def add(self, address: str, slug: str, checked: GenerationRequest) -> None:
        """Remember a request that has passed."""
        key = address, checked.fingerprint(slug)
        self._passed[key] = self._now(), checked.pages
        self._passed.move_to_end(key)
        if len(self._passed) > _MOST:
            self._passed.popitem(last=False)
