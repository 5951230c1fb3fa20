"""Finds the parts of a sound that may be speech, so that none is made up for silence or noise.

Voiced speech is periodic at the pitch of a voice, and its strength rises and falls with syllables.
Noise is not periodic, and hum and tones are steady.
"""

import attrs
import numpy as np
import numpy.typing as npt

from gateway_speech.child.resampling import Samples
from gateway_speech.child.sounds import FULL_SCALE

RATE = 16_000
_FRAME, _HOP = 640, 160
_HOP_S = _HOP / RATE
_FFT = 2_048
# Lags of pitches between 400 and 70 Hz.
_SHORTEST_LAG, _LONGEST_LAG = RATE // 400, RATE // 70
# The part of a frame that repeats itself, and the least level of speech.
_PERIODIC = 0.5
_QUIET_DB = -60.0
# Strength of the band of speech, between its loud and its quiet moments.
_LOWEST_HZ, _LOW_HZ, _HIGH_HZ = 100, 200, 4_000
_LEAST_SPREAD_DB = 6.0
LEAST_VOICED_S = 0.15
# Words begin before their first vowel and end after the last one.
_AROUND_S = 0.6
# Of consonants without a voice, around a sentence.
_EDGE_S = 0.2
_AT_ONCE = 1_000


@attrs.frozen
class Activity:
    """Which hundredths of a second are voiced."""

    voiced: npt.NDArray[np.bool_]

    def voiced_s(self, begin_s: float, end_s: float) -> float:
        """Return for how long a part of the sound is voiced."""
        return float(self._part(begin_s, end_s).sum() * _HOP_S)

    def has_speech(self, begin_s: float, end_s: float, least_s: float = LEAST_VOICED_S) -> bool:
        """Whether a part of the sound contains voiced speech."""
        return self.voiced_s(begin_s, end_s) >= least_s

    def is_heard(self, begin_s: float, end_s: float) -> bool:
        """Whether words with these times were near any voiced speech."""
        return self.has_speech(begin_s - _AROUND_S, end_s + _AROUND_S, _HOP_S)

    def narrowed(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """Return times without the silence before the first voiced sound and behind the last."""
        found = np.flatnonzero(self._part(begin_s, end_s))
        if not len(found):
            return begin_s, end_s
        first_s = begin_s + found[0] * _HOP_S - _EDGE_S
        last_s = begin_s + (found[-1] + 1) * _HOP_S + _EDGE_S
        return max(begin_s, float(first_s)), min(end_s, float(last_s))

    def _part(self, begin_s: float, end_s: float) -> npt.NDArray[np.bool_]:
        return self.voiced[max(0, int(begin_s / _HOP_S)) : max(0, int(end_s / _HOP_S))]


def find(samples: npt.NDArray[np.int16]) -> Activity:
    """Return the activity of a sound; nothing is voiced in one whose strength is steady."""
    count = max(0, 1 + (len(samples) - _FRAME) // _HOP)
    voiced, levels = np.zeros(count, bool), np.full(count, -120.0, np.float32)
    for at in range(0, count, _AT_ONCE):
        part = samples[at * _HOP : (min(at + _AT_ONCE, count) - 1) * _HOP + _FRAME]
        floats = (part / FULL_SCALE).astype(np.float32)
        voiced[at : at + _AT_ONCE], levels[at : at + _AT_ONCE] = _measure(floats)
    return Activity(voiced & _moves(levels))


def _measure(part: Samples) -> tuple[npt.NDArray[np.bool_], Samples]:
    """Return whether each frame is voiced, and its level in the band of speech."""
    frames = np.lib.stride_tricks.sliding_window_view(part, _FRAME)[::_HOP]
    frames = (frames - frames.mean(1, keepdims=True)) * _WINDOW
    spectrum = np.abs(np.fft.rfft(frames, _FFT, axis=1)) ** 2
    band = spectrum[:, _BAND]
    levels = 10 * np.log10(band.sum(1) / (_FFT * (_WINDOW**2).sum() / 2) + 1e-12)
    # Without the frequencies below the voice, such as hum.
    spectrum[:, : _LOWEST_HZ * _FFT // RATE] = 0
    repeats = np.fft.irfft(spectrum, axis=1)[:, : _LONGEST_LAG + 1] / _SELF
    whole = np.maximum(repeats[:, 0], 1e-9)
    periodic = repeats[:, _SHORTEST_LAG:].max(1) / whole > _PERIODIC
    return periodic & (levels > _QUIET_DB), levels.astype(np.float32)


def _moves(levels: Samples) -> npt.NDArray[np.bool_]:
    """Whether the level rises and falls within two seconds around each frame."""
    half = int(1 / _HOP_S)
    step = half // 2
    moves = np.zeros(len(levels), bool)
    for at in range(0, len(levels), step):
        near = levels[max(0, at - half) : at + step + half]
        loud, quiet = np.percentile(near, (95, 10))
        moves[at : at + step] = loud - quiet >= _LEAST_SPREAD_DB
    return moves


_WINDOW = np.hanning(_FRAME).astype(np.float32)
_BAND = slice(_LOW_HZ * _FFT // RATE, _HIGH_HZ * _FFT // RATE)
_SELF = np.fft.irfft(np.abs(np.fft.rfft(_WINDOW, _FFT)) ** 2)[: _LONGEST_LAG + 1]
_SELF = _SELF / _SELF[0]
