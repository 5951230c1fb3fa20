"""Prepares rich text for anydoc: without hidden and deleted text, and with raised digits."""

import re
from collections.abc import Iterator

import attrs

from gateway_documents.child.raised_digits import LOWERED, RAISED

_TOKEN = re.compile(
    rb"(?P<bin>\\bin(?P<size>\d{1,9}) ?)|\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,10})? ?"
    rb"|\\'[\da-fA-F]{2}|\\[^a-zA-Z]|(?P<open>\{)|(?P<close>\})|[^\\{}]+",
    re.DOTALL,
)
# Words of text that is not shown, and of formats that shift it.
_HIDING = (b"v", b"deleted")
_SHIFTS = {b"super": RAISED, b"sub": LOWERED, b"nosupersub": None}
# What older programs show of a shape, whose text is in front of it.
_FALLBACK = b"shprslt"
_WORTH_IT = re.compile(rb"\\(?:v|deleted|super|sub|shprslt)(?![a-zA-Z])")


@attrs.frozen
class _State:
    hides: frozenset[bytes] = frozenset()
    shift: dict[int, int] | None = None
    is_skipped: bool = False


def prepared(data: bytes) -> tuple[bytes, bool]:
    """Return rich text without its hidden text, and whether there was some."""
    if not _WORTH_IT.search(data):
        return data, False
    reader = _Reader(data)
    return b"".join(reader.tokens()), reader.has_hidden


@attrs.define
class _Reader:
    data: bytes
    has_hidden: bool = attrs.field(default=False, init=False)
    _state: _State = attrs.field(factory=_State, init=False)
    _outer: list[_State] = attrs.field(factory=list, init=False)

    def tokens(self) -> Iterator[bytes]:
        """Yield the tokens that are shown."""
        at = 0
        while found := _TOKEN.match(self.data, at):
            at = found.end()
            if found["bin"]:
                at += int(found["size"])
                yield self.data[found.start() : at]
            elif found["open"]:
                self._outer.append(self._state)
                yield found[0]
            elif found["close"]:
                self._state = self._outer.pop() if self._outer else self._state
                yield found[0]
            elif found["word"]:
                yield from self._word(found)
            else:
                yield from self._text(found[0])
        yield self.data[at:]

    def _word(self, found: re.Match[bytes]) -> Iterator[bytes]:
        word, is_on = found["word"], found["number"] != b"0"
        state = self._state
        if word in _HIDING:
            hides = state.hides | {word} if is_on else state.hides - {word}
            self._state = attrs.evolve(state, hides=hides)
        elif word in _SHIFTS:
            self._state = attrs.evolve(state, shift=_SHIFTS[word] if is_on else None)
        elif word == b"plain":
            self._state = attrs.evolve(state, hides=frozenset(), shift=None)
        elif word == _FALLBACK:
            self._state = attrs.evolve(state, is_skipped=True)
        if word == b"u" and self._is_hidden():
            return
        yield found[0]

    def _text(self, text: bytes) -> Iterator[bytes]:
        if self._is_hidden():
            self.has_hidden = self.has_hidden or (bool(text.strip()) and not self._state.is_skipped)
            return
        shift = self._state.shift
        if shift and all(char in shift for char in text):
            # Each character behind its number is for programs without Unicode.
            yield b"".join(b"{\\uc1\\u%d ?}" % shift[char] for char in text)
        else:
            yield text

    def _is_hidden(self) -> bool:
        return bool(self._state.hides) or self._state.is_skipped
