"""Finds words in Markdown, apart from marks that only stand for pictures and page breaks."""

import re

# In Markdown, everything that may begin a mark, and the first letter or digit of a word.
_FOUND = re.compile(
    r"""(?P<picture>!\[)
    | (?P<comment><!--)
    | (?P<entity>&\#?\w{1,10};)
    | (?P<tag></?[A-Za-z][\w:-]{0,40}(?=[\s/>]))
    | (?P<target>^\ {0,3}\[[^\]\n]{1,200}\]:[\ \t]{0,9}<?data:[^\n]{0,9})
    | (?P<line>^[^\w\n]{0,40}(?:
          (?:page|seite|página|pagina)[\W_]{0,9}\d{0,9}(?:[\W_]{0,9}(?:of|von|de|/)[\W_]{0,9}\d{1,9})?
        | (?:end|page)[\W_]{0,9}(?:of[\W_]{0,9}page|break)[\W_]{0,9}\d{0,9}
        | \{\d{1,9}\}-{3,80}
        | NO_CONTENT_HERE
        | (?:image|picture|figure|photo|img)[\W_]{0,9}\d{0,9}(?:\.(?:png|jpe?g|webp|gif|tiff?))?
      )[^\w\n]{0,80}$)
    | (?P<word>[^\W_])""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
# What ends each mark.
_ENDS = {"picture": "]", "comment": "-->", "tag": ">", "target": "\n"}
# What ends the address or the name after a picture's text.
_ADDRESS_ENDS = {"(": ")", "[": "]"}
# Characters of one search, during which no other thread runs, and those that the next one repeats:
# more than the longest mark has.
_WINDOW = 30_000
_OVERLAP = 400


def has_words(text: str) -> bool:
    """Whether a letter or digit is left without pictures, comments, tags and page breaks.

    Reads only up to the first word. 20 million characters without one take up to 25 seconds, so
    call this in a thread unless the text is short.
    """
    at, ends = 0, _Ends(f"{text}\n")
    while at < len(text):
        found = _FOUND.search(text, at, at + _WINDOW)
        if found is None:
            at += _WINDOW - _OVERLAP
            continue
        kind = found.lastgroup or ""
        if kind == "word":
            return True
        at = ends.after(_ENDS.get(kind, ""), found.end())
        if kind == "picture":
            at = ends.after(_ADDRESS_ENDS.get(text[at : at + 1], ""), at)
    return False


class _Ends:
    """Finds ends of marks. Searches only once for an end that does not occur any more."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._missing: set[str] = set()

    def after(self, end: str, at: int) -> int:
        """Return the place after the next `end`, or `at` if there is none."""
        if not end or end in self._missing:
            return at
        found = self._text.find(end, at)
        if found < 0:
            self._missing.add(end)
            return at
        return found + len(end)
