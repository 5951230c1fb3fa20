"""A timer that each request starts and stops, for the price of a look at the clock.

A timer of the event loop costs a plain answer some hundredths of its time, for nothing: nearly all
are cancelled.
"""

import asyncio
import math
from collections.abc import Callable


class LazyTimer:
    """Calls a function once `longest_s` have passed since the last start, unless it was stopped.

    `longest_s` gives seconds, and is asked at every look. The event loop has one timer at a time,
    which fires when the time can be over at the earliest.
    """

    def __init__(self, longest_s: Callable[[], float], expired: Callable[[], object]) -> None:
        self._longest_s = longest_s
        self._expired = expired
        self._loop = asyncio.get_running_loop()
        # By the loop's clock; infinite while the timer is stopped.
        self._since = math.inf
        self._look()

    def start(self) -> None:
        """Begin anew."""
        self._since = self._loop.time()

    def start_shorter(self) -> None:
        """Begin anew where `longest_s` is shorter than it was at the last look."""
        self.start()
        self._timer.cancel()
        self._look()

    def stop(self) -> None:
        """Let nothing happen until the next start."""
        self._since = math.inf

    def end(self) -> None:
        """Stop for good, and let go of the function and what it holds."""
        self._timer.cancel()
        del self._longest_s, self._expired

    def _look(self) -> None:
        longest_s = self._longest_s()
        left_s = min(self._since + longest_s - self._loop.time(), longest_s)
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._look)
        else:
            self._expired()
