"""Whisper's picture of a sound: the logarithm of 80 mel bands, a hundred times a second."""

import numpy as np
import numpy.typing as npt

from gateway_speech.child.resampling import Samples

RATE = 16_000
WINDOW_S = 30
_BANDS, _FFT, _HOP = 80, 400, 160
_FRAMES = WINDOW_S * RATE // _HOP
# Of the mel scale by Slaney, which is linear up to 1 kHz.
_LINEAR_HZ, _LINEAR_MELS, _LOG_STEP = 200 / 3, 15.0, np.log(6.4) / 27
_RANGE = 8.0


def log_mel(samples: Samples) -> Samples:
    """Return the bands of up to 30 seconds, padded with silence: 80 rows of 3,000."""
    padded = np.pad(samples, (0, WINDOW_S * RATE - len(samples)))
    padded = np.pad(padded, _FFT // 2, "reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, _FFT)[::_HOP][:_FRAMES]
    power = np.abs(np.fft.rfft(frames * _WINDOW, axis=1)).astype(np.float32) ** 2
    logs = np.log10(np.maximum(_FILTERS @ power.T, 1e-10))
    made: Samples = ((np.maximum(logs, logs.max() - _RANGE) + 4) / 4).astype(np.float32)
    return made


def _hertz(mels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    above = 1_000 * np.exp((mels - _LINEAR_MELS) * _LOG_STEP)
    return np.where(mels < _LINEAR_MELS, mels * _LINEAR_HZ, above)


def _filters() -> Samples:
    top = _LINEAR_MELS + np.log(RATE / 2 / 1_000) / _LOG_STEP
    edges = _hertz(np.linspace(0, top, _BANDS + 2))
    ramps = edges[:, None] - np.linspace(0, RATE / 2, _FFT // 2 + 1)[None]
    widths = np.diff(edges)[:, None]
    triangles = np.maximum(0, np.minimum(-ramps[:-2] / widths[:-1], ramps[2:] / widths[1:]))
    made: Samples = (triangles * (2 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32)
    return made


_FILTERS = _filters()
_WINDOW = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_FFT) / _FFT)).astype(np.float32)
