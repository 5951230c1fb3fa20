"""Changes the sample rate of a sound, block by block, by a windowed sinc."""

import math

import attrs
import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]

# Zero crossings of the sinc on each side, and the pass band's share of the lower rate's half.
_CROSSINGS = 16
_PASS = 0.94
_KAISER = 9.0
# Odd pairs of rates have more phases; then the nearest one is taken.
_MOST_PHASES = 1_024
# Outputs that are computed together.
_AT_ONCE = 1 << 13


@attrs.define
class Resampler:
    """Converts one channel; the sound is not shifted in time.

    Output `n` is at input time `n * source / target`. `push` returns what is complete, and `finish`
    the rest, for which silence follows the sound.
    """

    source: int
    target: int
    _step: int = attrs.field(init=False)
    _phases: int = attrs.field(init=False)
    _taps: int = attrs.field(init=False)
    _table: Samples = attrs.field(init=False)
    # Input from `_begin` on, with silence before the sound.
    _kept: Samples = attrs.field(init=False)
    _begin: int = attrs.field(init=False)
    _received: int = attrs.field(default=0, init=False)
    _returned: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        shared = math.gcd(self.source, self.target)
        self._step, self._phases = self.source // shared, self.target // shared
        half = math.ceil(_CROSSINGS * max(1.0, self.source / self.target))
        self._taps = 2 * half
        phases = min(self._phases, _MOST_PHASES)
        self._table = _filters(phases, half, min(1.0, self.target / self.source))
        self._kept, self._begin = np.zeros(half, np.float32), -half

    def push(self, block: Samples) -> Samples:
        """Return the samples that are complete with another block of input."""
        if self.source == self.target:
            return block
        self._received += len(block)
        self._kept = np.concatenate((self._kept, block))
        return self._convert(self._received - self._taps // 2)

    def finish(self) -> Samples:
        """Return the rest of the sound."""
        if self.source == self.target:
            return np.zeros(0, np.float32)
        total = self.length_of(self._received)
        self._kept = np.concatenate((self._kept, np.zeros(self._taps + self._step, np.float32)))
        rest = self._convert(self._received + self._step)
        return rest[: max(0, total - (self._returned - len(rest)))]

    def length_of(self, frames: int) -> int:
        """Return the number of output samples of a sound."""
        return -(-frames * self._phases // self._step)

    def _convert(self, until: int) -> Samples:
        """Return the outputs whose input time is before `until`."""
        end = max(self._returned, -(-until * self._phases // self._step))
        parts = [
            self._outputs(np.arange(at, min(at + _AT_ONCE, end)))
            for at in range(self._returned, end, _AT_ONCE)
        ]
        self._returned = end
        self._drop(end * self._step // self._phases - self._taps // 2)
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def _outputs(self, numbers: npt.NDArray[np.int64]) -> Samples:
        places = numbers * self._step
        first = places // self._phases - self._taps // 2 + 1 - self._begin
        windows = np.lib.stride_tricks.sliding_window_view(self._kept, self._taps)[first]
        rows = places % self._phases * len(self._table) // self._phases
        made: Samples = np.einsum("ij,ij->i", windows, self._table[rows])
        return made

    def _drop(self, before: int) -> None:
        if before > self._begin:
            self._kept = self._kept[before - self._begin :]
            self._begin = before


def _filters(phases: int, half: int, band: float) -> Samples:
    """Return a row of taps for each phase."""
    offsets = np.arange(phases)[:, None] / phases - np.arange(-half + 1, half + 1)[None]
    window = np.i0(_KAISER * np.sqrt(np.clip(1 - (offsets / half) ** 2, 0, 1))) / np.i0(_KAISER)
    taps = np.sinc(offsets * band * _PASS) * window
    scaled: Samples = (taps / taps.sum(1, keepdims=True)).astype(np.float32)
    return scaled
