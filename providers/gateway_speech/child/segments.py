"""Sentences of a transcript with their times, from the tokens of one window."""

from collections.abc import Sequence

import attrs

from gateway_speech.child.vocabulary import Vocabulary

WINDOW_S = 30.0
# A window that moves less would be read for ever.
_LEAST_STEP_S = 1.0


@attrs.frozen
class Segment:
    """A sentence, or a part of one, and its times in seconds."""

    start: float
    end: float
    text: str


@attrs.frozen
class Window:
    """The sentences of one window, and how far the next one is behind its beginning."""

    segments: Sequence[Segment]
    step_s: float


def read(tokens: Sequence[int], vocabulary: Vocabulary, length_s: float) -> Window:
    """Return the sentences of a window; times begin with it.

    A sentence that the window's end cuts off is read again from the last complete one on.
    """
    found: list[Segment] = []
    words: list[int] = []
    begin = 0.0
    for token in tokens:
        seconds = vocabulary.seconds(token)
        if seconds is None:
            words.append(token)
            continue
        found += _segment(vocabulary.text(words), begin, min(seconds, length_s))
        words, begin = [], seconds
    is_last = length_s < WINDOW_S
    rest = list(_segment(vocabulary.text(words), begin, length_s))
    if rest and found and not is_last and found[-1].end >= _LEAST_STEP_S:
        return Window(found, found[-1].end)
    # Behind the last sentence there may be speech that the model has left out.
    step_s = found[-1].end if found and not rest else WINDOW_S
    return Window(found + rest, max(step_s, _LEAST_STEP_S))


def _segment(text: str, begin: float, end: float) -> list[Segment]:
    words = text.strip()
    return [Segment(begin, max(begin, end), words)] if words else []


def in_order(segments: Sequence[Segment], total_s: float) -> list[Segment]:
    """Return the sentences with times within the sound, each after the one before."""
    ordered, last = [], 0.0
    for one in segments:
        start = round(min(max(one.start, last), total_s), 2)
        last = round(min(max(one.end, start), total_s), 2)
        ordered.append(Segment(start, last, one.text))
    return ordered
