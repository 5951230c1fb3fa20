"""Tidies the Markdown that anydoc writes: heads of tables, nested lists and blank lines."""

import re
from collections.abc import Iterator

import attrs

from gateway_documents.child import tables

# anydoc prints the file's name of a picture without a description.
_PICTURE_NAME = re.compile(r"^image\d*\.(?:png|jpe?g|gif|bmp|tiff?|emf|wmf|svg)$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_EMPTY_ROW = re.compile(r" *\|(?: *\|)+ *")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?: +|$)")
_FENCE = re.compile(r" *(?:```|~~~)")
# Numbers of items, references to notes, and the signs of Markdown.
_NO_WORDS = re.compile(
    r"(?m)^[ >]*(?:(?:[-*+]|\d{1,9}[.)])(?: +|$))+|\[\^\d+\]:?|<br>|[\s|#>*_$\\:\-~`]"
)


def tidied(markdown: str) -> str:
    """Return the Markdown with filled heads of tables and items that stand where they belong."""
    text = _PICTURE_NAME.sub("", markdown)
    text = "\n".join(_with_heads(_Indents().lines(text.split("\n"))))
    return _BLANK_LINES.sub("\n\n", text).strip("\n")


def has_words(markdown: str) -> bool:
    """Whether Markdown has more than its own signs and the numbers of items."""
    return bool(_NO_WORDS.sub("", markdown))


def _with_heads(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines with the first row of a table in place of an empty head."""
    for line in lines:
        if not _EMPTY_ROW.fullmatch(line):
            yield line
            continue
        rule = next(lines, "")
        if tables.is_rule(rule.strip()):
            yield next(lines, line)
        else:
            yield line
        yield rule


@attrs.define
class _Indents:
    """Moves items to the left: anydoc indents them behind the label of their parent, as code."""

    _open: list[tuple[int, int]] = attrs.field(factory=list, init=False)
    """The items that the next line may belong to: their indent before, and that of their text."""
    _is_code: bool = attrs.field(default=False, init=False)

    def lines(self, lines: list[str]) -> Iterator[str]:
        """Yield the lines with other indents."""
        for line in lines:
            text = line.lstrip(" ")
            is_fence = bool(_FENCE.match(line))
            if text and not (self._is_code and not is_fence):
                yield self._moved(text, len(line) - len(text))
            else:
                yield line
            self._is_code ^= is_fence

    def _moved(self, text: str, before: int) -> str:
        while self._open and self._open[-1][0] >= before:
            self._open.pop()
        after = self._open[-1][1] if self._open else before
        while item := _ITEM.match(text):
            rest = text[item.end() :]
            if not _ITEM.match(rest):
                self._open.append((before, after + item.end()))
                break
            # An item of a list whose parent has no text.
            self._open.append((before, after))
            before, text = before + item.end(), rest
        return " " * after + text
