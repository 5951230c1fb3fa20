"""How many events a minute one payer may have sent to one host."""

from collections import OrderedDict, deque

_MOST = 10
_WINDOW_S = 60.0


class Pace:
    """Counts attempts by payer and host, so that nobody floods a third party by small payments."""

    def __init__(self) -> None:
        # The pair whose last attempt is the oldest comes first.
        self._sent: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def take(self, payer: str, host: str, now: float) -> float:
        """Count an attempt now; returns 0, or the time from which on the next one may begin."""
        self._forget(now)
        times = self._sent.setdefault((payer, host), deque())
        if times and times[-1] > now:
            # The clock was put back.
            times.clear()
        while times and times[0] <= now - _WINDOW_S:
            times.popleft()
        if len(times) >= _MOST:
            return times[0] + _WINDOW_S
        times.append(now)
        self._sent.move_to_end((payer, host))
        return 0.0

    def _forget(self, now: float) -> None:
        while self._sent:
            pair, times = next(iter(self._sent.items()))
            if times and times[-1] > now - _WINDOW_S:
                return
            del self._sent[pair]
