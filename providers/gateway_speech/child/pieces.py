"""Splits a text into pieces that the voice reads at once, with pauses between them."""

import re
from collections.abc import Iterator

import attrs

# The voice's memory grows with a piece.
MAX_CHARS = 220
_LEAST_CHARS = 60
PARAGRAPH_S, SENTENCE_S, CLAUSE_S, BREATH_S = 0.75, 0.42, 0.2, 0.08
# Behind titles and single letters, a full stop ends no sentence.
_NO_END = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|Nos|vs|Jr|Sr|approx|Fig|Gen|Col|Rev)|\b[A-Z])\.$"
)
_ENDING = re.compile(r"(?<=[.!?…])[\"”')\]]*\s+(?=[\"“'(\[]?[^\Wa-z])|\n+")
# The best places to break a long sentence come first.
_BREAKS = (
    (re.compile(r"[;:—]\s"), CLAUSE_S),
    (re.compile(r",\s"), CLAUSE_S),
    (re.compile(r"\s"), BREATH_S),
)


@attrs.frozen
class Piece:
    """A part of a text, and the pause behind it in seconds."""

    text: str
    pause_s: float


def split(text: str) -> Iterator[Piece]:
    """Yield the pieces of a text; the last one has no pause."""
    pieces = [piece for paragraph in text.split("\n\n") for piece in _of_paragraph(paragraph)]
    yield from pieces[:-1]
    if pieces:
        yield attrs.evolve(pieces[-1], pause_s=0.0)


def _of_paragraph(paragraph: str) -> list[Piece]:
    pieces = [piece for sentence in _sentences(paragraph) for piece in _of_sentence(sentence)]
    if pieces:
        pieces[-1] = attrs.evolve(pieces[-1], pause_s=PARAGRAPH_S)
    return pieces


def _sentences(paragraph: str) -> Iterator[str]:
    begin = 0
    for found in _ENDING.finditer(paragraph):
        sentence = paragraph[begin : found.end()].strip()
        if not _NO_END.search(sentence):
            yield sentence
            begin = found.end()
    yield paragraph[begin:].strip()


def _of_sentence(sentence: str) -> Iterator[Piece]:
    while len(sentence) > MAX_CHARS:
        at, pause_s = _break_of(sentence)
        yield from _piece(sentence[:at], pause_s)
        sentence = sentence[at:].lstrip()
    yield from _piece(sentence, SENTENCE_S)


def _piece(text: str, pause_s: float) -> Iterator[Piece]:
    if any(map(str.isalnum, text)):
        yield Piece(text.strip(), pause_s)


def _break_of(sentence: str) -> tuple[int, float]:
    """Return where to break a long sentence, and the pause there."""
    for pattern, pause_s in _BREAKS:
        places = [found.end() for found in pattern.finditer(sentence, _LEAST_CHARS, MAX_CHARS)]
        if places:
            return places[-1], pause_s
    return MAX_CHARS, 0.0
