"""Spaces within words, such as "CAL IFORN IA" for widely set letters."""

import re

_MAX_PARTS = 12
# A part of at most so many letters was surely parted; two longer ones may be two words.
_SHORT = 2
_MARKS = "*_#|~"
_WORD = re.compile(r"\S+")


def close(markdown: str, text: str) -> str:
    """Return a page's Markdown with words joined that are one word in its plain text.

    Parts that are words of the text, too, stay as they are.
    """
    known = set(_WORD.findall(text))
    return "\n".join(_line(line, known) for line in markdown.split("\n"))


def _line(line: str, known: set[str]) -> str:
    words = line.split(" ")
    if all(word in known for word in words):
        return line
    closed: list[str] = []
    while words:
        size = _size(words, known)
        closed.append("".join(words[:size]))
        del words[:size]
    return " ".join(closed)


def _size(words: list[str], known: set[str]) -> int:
    """Return how many of the first words are one word: mostly one."""
    if words[0].strip(_MARKS) in known:
        return 1
    for size in range(min(_MAX_PARTS, len(words)), 1, -1):
        parts = [word.strip(_MARKS) for word in words[:size]]
        whole = "".join(parts)
        is_short = whole.isupper() or min(map(len, parts)) <= _SHORT
        if is_short and all(parts) and whole in known and known.isdisjoint(parts):
            return size
    return 1
