"""How fast the disk fills: the room that is free now against that of the last day."""

from collections import deque

_EVERY_S = 3_600.0
_KEPT = 24
# A shorter look takes a burst of large files for a habit.
_LEAST_S = 12 * 3_600.0


class DiskPace:
    """Keeps the free room of each hour since the start, for a day."""

    def __init__(self) -> None:
        # Unix seconds and bytes, oldest first.
        self._samples: deque[tuple[float, int]] = deque(maxlen=_KEPT)

    def note(self, now: float, free: int) -> None:
        """Keep how many bytes are free, once an hour."""
        if not self._samples or now - self._samples[-1][0] >= _EVERY_S:
            self._samples.append((now, free))

    def lasts_s(self, now: float, free: int, floor: int) -> float | None:
        """Return in how many seconds only `floor` bytes are left at this pace.

        None where the pace is not known yet, or the disk does not fill.
        """
        if not self._samples or now - self._samples[0][0] < _LEAST_S:
            return None
        at, was_free = self._samples[0]
        used = was_free - free
        return None if used <= 0 else max(0, free - floor) * (now - at) / used
