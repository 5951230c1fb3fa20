"""Ends headings, items of lists and rows of tables, and drops the marks of Markdown and of tags."""

import re
from collections.abc import Iterator

_TAGS = (
    "a|abbr|article|audio|b|blockquote|body|br|break|code|dd|del|div|dl|dt|em|emphasis|footer|h[1-6]"
    "|head|header|hr|html|i|img|li|main|mark|nav|ol|p|phoneme|pre|prosody|s|say-as|section|small"
    "|span|speak|strong|sub|sup|table|tbody|td|th|thead|title|tr|u|ul|voice"
)
# Words of a text can stand between < and > too.
_TAG = re.compile(rf"</?({_TAGS})(?:\s+[\w:-]{{1,40}}=[^<>]{{0,500}}|\s*)/?>", re.IGNORECASE)
_INLINE = re.compile(
    "a|abbr|b|code|del|em|emphasis|i|mark|phoneme|prosody|s|say-as|small|span|strong|sub|sup|u|voice",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(amp|lt|gt|quot|apos|nbsp|#39);")
_ENTITIES = {
    "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": " ", "#39": "'"
}  # fmt: skip
_LINK = re.compile(r"!?\[([^\[\]\n]{1,500})\]\([^()\s]{0,2000}\)")
_HEADING = re.compile(r"^ ?#{1,6} ")
_ITEM = re.compile(r"^ ?(?:[-*+•]|(\d{1,3}[.)])) (?=\S)")
_QUOTE = re.compile(r"^ ?> ?(?=\S)")
_RULE = re.compile(r"\s*(?:([-*_=])\s*)(?:\1\s*){2,}")
_ROW = re.compile(r" ?\|.*\S.*| ?[^|]+(?: \| [^|]+)+\|?")
_ROW_RULE = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*")
_MARKS = (
    (re.compile(r"[`|\[\]{}]+"), " "),
    (re.compile(r"(?<!\w)[*_~]{1,3}(?=\S)|(?<=\S)[*_~]{1,3}(?!\w)"), ""),
)
_CLOSING = "\"'”’)*_~` "
_ENDS = ".!?:;,…—"


def without_tags(text: str) -> str:
    """Drop tags of HTML and SSML; those of blocks end a paragraph."""
    if "<" in text:
        text = _TAG.sub(lambda found: "" if _INLINE.fullmatch(found[1]) else "\n\n", text)
    return _ENTITY.sub(lambda found: _ENTITIES[found[1]], text) if "&" in text else text


def spoken(text: str) -> str:
    """Return the words of a text whose spaces are single; each block ends as a sentence."""
    text = "\n".join(_ended(_LINK.sub(r"\1", text).split("\n")))
    for pattern, replacement in _MARKS:
        text = pattern.sub(replacement, text)
    return text


def _ended(lines: list[str]) -> Iterator[str]:
    """Yield lines without the marks before them, and a full stop behind each block."""
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if _ROW_RULE.fullmatch(line) or _RULE.fullmatch(line):
            yield ""
        elif _HEADING.match(line):
            yield _end(_HEADING.sub("", line, count=1))
        elif _ROW.fullmatch(line):
            cells = (cell.strip() for cell in line.split("|"))
            yield _end(", ".join(cell for cell in cells if cell))
        else:
            yield _end(_unmarked(line)) if _ends_before(after) else _unmarked(line)


def _unmarked(line: str) -> str:
    line = _QUOTE.sub("", line)
    return _ITEM.sub(lambda found: f"{found[1]} " if found[1] else "", line, count=1)


def _ends_before(line: str) -> bool:
    """Whether a new block begins with a line; empty ones end a paragraph, with a pause."""
    return any(mark.match(line) for mark in (_HEADING, _ITEM, _RULE))


def _end(line: str) -> str:
    words = line.rstrip(_CLOSING)
    return line if not words or words[-1] in _ENDS else f"{line.rstrip()}."
