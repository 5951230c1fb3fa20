"""How much memory the children of a function take, by what earlier ones took."""

import math

import attrs

from gateway.sandbox.process import Loaded

# An estimate exceeds earlier peaks by a quarter, and by pages that are no longer shared.
_MARGIN, _MARGIN_BYTES = 1.25, 8_000_000
# A child that ends early must not lower the estimates of larger inputs to nothing.
_LEAST_PEAK_BYTES = 4_000_000
# Each child lowers the remembered peaks by this share of the difference to its own.
_FORGOTTEN = 1 / 8
# A warmed process that has not reported its size.
_UNKNOWN_WARMED_BYTES = 40_000_000


@attrs.define(eq=False, repr=False)
class Known:
    """The memory that processes of one function took."""

    warmed_bytes: int = _UNKNOWN_WARMED_BYTES
    # The part of it that each child shares until it writes there.
    shared_bytes: int = 0
    # What children took beyond that, by the number of binary digits of their input's size.
    peaks: dict[int, int] = attrs.field(factory=dict)

    def estimate(self, size: int) -> float:
        """Return the memory of a child; infinite if none is known.

        A larger input than the known ones takes more in proportion.
        """
        digits = size.bit_length()
        if not self.peaks:
            return math.inf
        known = min((one for one in self.peaks if one >= digits), default=max(self.peaks))
        peak = max(peak for one, peak in self.peaks.items() if one <= known)
        return (peak << max(0, digits - known)) * _MARGIN + _MARGIN_BYTES

    def note_loaded(self, loaded: Loaded) -> None:
        """Note the size of the warmed process."""
        if loaded.warmed_bytes:
            self.warmed_bytes, self.shared_bytes = loaded.warmed_bytes, loaded.shared_bytes

    def note_end(self, size: int, peak_bytes: int, most_bytes: int) -> None:
        """Correct the estimates by a child that has ended.

        An exploited child may report any peak. So it counts within the child's own limits.
        """
        if not peak_bytes:
            return
        peak = min(max(_LEAST_PEAK_BYTES, peak_bytes - self.shared_bytes), most_bytes)
        self.note_killed(size, peak)
        # Smaller inputs count towards the estimate, too, so their peaks are forgotten with it.
        for digits, before in self.peaks.items():
            if digits <= size.bit_length() and before > peak:
                self.peaks[digits] = int(before - (before - peak) * _FORGOTTEN)

    def note_killed(self, size: int, taken_bytes: int) -> None:
        """Correct the estimates by a child that would have taken at least this much."""
        digits = size.bit_length()
        self.peaks[digits] = max(taken_bytes, self.peaks.get(digits, 0))
