"""Keeps the results of checks before payment, so that a file is not parsed again after it."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

import attrs

_MAX_RESULTS = 32
# As long as the gateway does not check a repeated request again.
_TTL_S = 300.0

Parts = Sequence[bytes]


@attrs.define
class CheckedResults:
    """The latest results by file, for five minutes. The child limits their size."""

    _now: Callable[[], float] = time.monotonic
    # Oldest first.
    _kept: OrderedDict[str, tuple[float, Parts]] = attrs.field(factory=OrderedDict, init=False)

    def add(self, file: str, parts: Parts) -> None:
        """Keep a result under a file's hash; forget old ones."""
        self._kept[file] = self._now(), parts
        self._kept.move_to_end(file)
        while len(self._kept) > _MAX_RESULTS or self._is_old(next(iter(self._kept))):
            self._kept.popitem(last=False)

    def take(self, file: str) -> Parts | None:
        """Return a file's result once, or None."""
        parts = None if file not in self._kept or self._is_old(file) else self._kept[file][1]
        self._kept.pop(file, None)
        return parts

    def _is_old(self, file: str) -> bool:
        return self._now() - self._kept[file][0] > _TTL_S
