"""Quality figures of pictures, outlines, transcripts and sounds."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Values = NDArray[Any]
# SSIM as Wang and others defined it (2004).
_SIDE, _SIGMA = 11, 1.5
_SMALL = ((0.01 * 255) ** 2, (0.03 * 255) ** 2)
_SPELLINGS = {"mr": "mister", "mrs": "missus", "dr": "doctor"}


def psnr(made: Image.Image, truth: Image.Image) -> float:
    """Return the peak signal-to-noise ratio of the luma, in dB."""
    error = float(((_luma(made) - _luma(truth)) ** 2).mean())
    return 10 * float(np.log10(255**2 / max(error, 1e-9)))


def ssim(made: Image.Image, truth: Image.Image) -> float:
    """Return the structural similarity of the luma, 1 for equal pictures."""
    one, other = _luma(made), _luma(truth)
    mean_one, mean_other = _blurred(one), _blurred(other)
    variances = _blurred(one**2) - mean_one**2 + _blurred(other**2) - mean_other**2
    covariance = _blurred(one * other) - mean_one * mean_other
    light = (2 * mean_one * mean_other + _SMALL[0]) / (mean_one**2 + mean_other**2 + _SMALL[0])
    return float((light * (2 * covariance + _SMALL[1]) / (variances + _SMALL[1])).mean())


def _luma(image: Image.Image) -> Values:
    return np.asarray(image.convert("RGB").convert("L"), np.float64)


def _blurred(values: Values) -> Values:
    places = np.arange(_SIDE) - _SIDE // 2
    weights = np.exp(-(places**2) / (2 * _SIGMA**2))
    weights /= weights.sum()
    for _ in range(2):
        windows = np.lib.stride_tricks.sliding_window_view(values, _SIDE, axis=0)
        values = (windows @ weights).T
    return values


def iou(made: Image.Image, truth: Image.Image) -> float:
    """Return the intersection over the union of two grey masks, each cut at one half."""
    one, other = (np.asarray(mask) >= 128 for mask in (made, truth))
    return float((one & other).sum() / max(1, (one | other).sum()))


def word_errors(text: str, truth: str) -> tuple[int, int]:
    """Return the wrong, missing and added words of a transcript, and the words of the truth."""
    heard, said = _words(text), _words(truth)
    costs = list(range(len(heard) + 1))
    for row, word in enumerate(said, 1):
        before, costs[0] = costs[0], row
        for column, other in enumerate(heard, 1):
            cost = min(costs[column] + 1, costs[column - 1] + 1, before + (word != other))
            before, costs[column] = costs[column], cost
    return costs[-1], len(said)


def _words(text: str) -> list[str]:
    plain = re.sub(r"[^a-z0-9' ]", " ", text.lower().replace("\u2019", "'").replace("\n", " "))
    return [_SPELLINGS.get(word, word) for word in plain.split()]


def word_error_rate(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the errors of transcripts (each with its truth) as a part of all words."""
    counts = [word_errors(text, truth) for text, truth in pairs]
    return sum(errors for errors, _ in counts) / max(1, sum(words for _, words in counts))


def si_sdr(made: Values, truth: Values) -> float:
    """Return the scale-invariant ratio of signal to distortion, in dB."""
    made, truth = made - made.mean(), truth - truth.mean()
    wanted = truth * (made @ truth) / (truth @ truth)
    rest = made - wanted
    return 10 * float(np.log10((wanted @ wanted) / max(float(rest @ rest), 1e-12)))
