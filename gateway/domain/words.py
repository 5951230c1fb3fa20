"""Finds words in Markdown, apart from marks that only stand for pictures and page breaks.

The built-in parser checks documents by the same rule in its sandbox, before payment. So this module
imports nothing of the gateway.
"""

import html
import re
import unicodedata

# In Markdown, everything that may begin a mark, and the first letter or digit of a word. A search
# stops at the first word, so there is none before a mark.
_FOUND = re.compile(
    r"""(?P<escaped>\\[^\w\s])
    | (?P<picture>!\[)
    | (?P<comment><!--)
    | (?P<entity>&\#?\w{1,10};)
    | (?P<tag></?[A-Za-z][\w:-]{0,40}(?=[\s/>]))
    | (?P<target>^\ {0,3}\[[^\]\n]{1,200}\]:[\ \t]{0,9}<?data:[^\n]{0,9})
    | (?P<number>\{\d{1,9}\}-{3,80})
    | (?P<line>(?:
          (?:\#{1,6}|[-=_~]{2,40})[\ \t]{0,9}(?:page|seite|página|pagina)[\W_]{0,9}\d{1,9}
              (?:[\W_]{0,9}(?:of|von|de|/)[\W_]{0,9}\d{1,9})?
        | (?:end|page)[\W_]{0,9}(?:of[\W_]{0,9}page|break)[\W_]{0,9}\d{0,9}
        | NO_CONTENT_HERE
        | \[(?:image|picture|figure|photo|img)[\W_]{0,9}\d{0,9}(?:\.(?:png|jpe?g|webp|gif|tiff?))?\]
      )(?=[^\w\n]{0,80}(?:$|<)))
    | (?P<symbols>[^\w\s\x00-\x7f\ufffd]{1,300})
    | (?P<word>[^\W_])""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
# Tags around words, or of a picture. Others are words themselves, as in XML.
_TAGS = re.compile(
    r"a|abbr|article|aside|b|big|blockquote|body|br|caption|center|cite|code|col|colgroup|dd|del"
    r"|div|dl|dt|em|figcaption|figure|font|footer|h[1-6r]|head|header|html|i|image|img|ins|li|main"
    r"|mark|nav|ol|p|page([_-]?(break|number))?|picture|pre|s|section|small|source|span|strong"
    r"|style|sub|sup|svg|table|tbody|td|tfoot|th|thead|title|tr|u|ul",
    re.IGNORECASE,
)
# What ends each mark.
_ENDS = {"comment": "-->", "tag": ">", "target": "\n"}
# What encloses the address or the name after a picture's text.
_PAIRS = {"(": ")", "[": "]"}
# How far a bracket may close after the first one that closes.
_MOST_NESTED = 1_000
# Characters of one search, during which no other thread runs, and those that the next one repeats:
# more than the longest mark has.
_WINDOW = 30_000
_OVERLAP = 400


def has_words(text: str) -> bool:
    """Whether a letter, digit or symbol is left without pictures, comments, tags and page breaks.

    A symbol is a star, a check mark or an emoji. Reads only up to the first word. 20 million
    characters without one take up to 25 seconds, so call this in a thread unless the text is short.
    """
    at, ends = 0, _Ends(f"{text}\n")
    while at < len(text):
        found = _FOUND.search(text, at, at + _WINDOW)
        if found is None:
            at += _WINDOW - _OVERLAP
        elif _is_word(found.lastgroup, found.group()):
            return True
        elif found.lastgroup == "picture":
            at = ends.after_picture(found.end())
        else:
            at = ends.after(_ENDS.get(found.lastgroup or "", ""), found.end())
    return False


def _is_word(kind: str | None, mark: str) -> bool:
    if kind == "tag":
        return _TAGS.fullmatch(mark.strip("</")) is None
    if kind == "entity":
        return any(char.isalnum() or _is_symbol(char) for char in html.unescape(mark))
    return kind == "word" or (kind == "symbols" and any(map(_is_symbol, mark)))


def _is_symbol(char: str) -> bool:
    # A replacement character means an unknown one.
    return char != "\ufffd" and unicodedata.category(char) == "So"


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

    def after_picture(self, at: int) -> int:
        """Return the place after a picture's text and address, and after those of a link around it.

        `at` is behind the opening bracket.
        """
        at = self._after_pair("[", at)
        while True:
            if (opening := self._text[at : at + 1]) not in _PAIRS:
                return at
            end = self._after_pair(opening, at + 1)
            # A link around the picture.
            at = end + 1 if self._text.startswith(("](", "]["), end) else end
            if at == end:
                return at

    def _after_pair(self, opening: str, at: int) -> int:
        """Return the place after a bracket's end, which may have others inside, or `at`."""
        closing = _PAIRS[opening]
        if opening == "(" and self._text.startswith("<", at):
            at = self.after(">", at)
        first = end = self.after(closing, at)
        open_inside = self._text.count(opening, at, end)
        while open_inside:
            found = self._text.find(closing, end, end + _MOST_NESTED)
            if found < 0:
                return first
            open_inside += self._text.count(opening, end, found) - 1
            end = found + 1
        return end
