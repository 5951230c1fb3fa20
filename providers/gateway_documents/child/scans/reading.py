"""Judges the text reader's answer for a page.

The reader turns each tall line to the left before reading it. So it reads pages that were turned to
the right, and vertical Japanese and Chinese, whose characters it knows lying on their side.
"""

import re
from collections.abc import Sequence

from gateway_documents.child.scans.lines import Line

# Measured on pages in Latin script, Chinese and Japanese: 0.98 and more. Upside down they have at
# most 0.77.
_CERTAIN = 0.95
# Scans with faults have 0.9, other scripts at most 0.84, and Cyrillic a twentieth of its letters.
_LEGIBLE = 0.86
_LETTERS = 0.4
# The reader knows some Greek letters, as symbols of formulas, and takes others for Latin ones.
_GREEK_WORD = re.compile(r"(?=\w*[\u0370-\u03ff])\w{3,}")
_GREEK_SHARE = 0.15


def is_doubtful(lines: Sequence[Line]) -> bool:
    """Whether the page may be upside down, or in a script that the reader does not know."""
    return certainty(lines) < _CERTAIN


def certainty(lines: Sequence[Line]) -> float:
    """Return how certain the reader is, from 0 to 1; missing letters lower it."""
    return _mean_certainty(lines) * min(1.0, _letters_found(lines))


def is_legible(lines: Sequence[Line]) -> bool:
    """Whether the text is in a script that the reader knows, and not only marks."""
    greek = sum(len(word) for line in lines for word in _GREEK_WORD.findall(line.text))
    return (
        any(char.isalnum() for line in lines for char in line.text)
        and _mean_certainty(lines) >= _LEGIBLE
        and _letters_found(lines) >= _LETTERS
        and greek <= _GREEK_SHARE * _size(lines)
    )


def _mean_certainty(lines: Sequence[Line]) -> float:
    """Return the mean of all characters."""
    return sum(line.certainty * line.size for line in lines) / max(1, _size(lines))


def _letters_found(lines: Sequence[Line]) -> float:
    """Return the characters per square of a line's height; every script has 1 or more."""
    squares = sum(line.length / line.height for line in lines)
    return _size(lines) / squares if squares else 0.0


def _size(lines: Sequence[Line]) -> int:
    return sum(line.size for line in lines)
