"""Escapes characters of a document that Markdown would take for its own signs.

Only what would change the meaning is escaped: `5 * 3`, `snake_case` and `a < b` stay as they are.
"""

import re

_ANY = re.compile(r"[\\\]&<`*_~]")
# A backslash before punctuation, the middle of a link, and an entity.
_ALWAYS = r"\\(?=[!-/:-@\[-`{-~\n]|\Z)|\](?=\()|&(?=#?\w{1,32};)"
_TAG = r"<(?=[A-Za-z/!?])"
_CODE = r"`"
_PATTERNS = {
    (has_tags, has_code): re.compile(
        "|".join((_ALWAYS, *([_TAG] if has_tags else ()), *([_CODE] if has_code else ())))
    )
    for has_tags in (False, True)
    for has_code in (False, True)
}
_RUNS = {sign: re.compile(re.escape(sign) + "+") for sign in "*_~"}
# Headings, quotes, lists, fences, rules, underlines of headings and of tables' heads, and
# definitions of links. The sign to be escaped is the last one of the match.
_BLOCK = re.compile(
    r"(?m)^[ \t]*(?:#(?=#{0,5}(?:[ \t]|$))|>|[-+*](?=[ \t]|$)|\d{1,9}[.)](?=[ \t]|$)|`(?=``)"
    r"|~(?=~~)|[-*_=:|](?=[-*_=:| \t]*$)|\[(?=[^\]\n]{1,999}\]:))"
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def inline(text: str) -> str:
    """Return a text of one paragraph, heading or cell that Markdown shows as it is."""
    if not _ANY.search(text):
        return text
    text = _PATTERNS[">" in text, text.count("`") > 1].sub(r"\\\g<0>", text)
    for sign, runs in _RUNS.items():
        if sign in text:
            text = _without_emphasis(text, runs, is_for_words=sign == "_")
    return text


def starts(text: str) -> str:
    """Return a text whose lines start no heading, list, quote, rule or code block."""
    return _BLOCK.sub(_escaped_sign, text)


def paragraph(text: str) -> str:
    """Return a text that Markdown shows as one paragraph."""
    return starts(inline(text))


def shown(markdown: str) -> str:
    """Return Markdown without the backslashes before signs."""
    return _ESCAPED.sub(r"\1", markdown)


def _escaped_sign(found: re.Match[str]) -> str:
    return f"{found[0][:-1]}\\{found[0][-1]}"


def _without_emphasis(text: str, runs: re.Pattern[str], *, is_for_words: bool) -> str:
    """Escape the runs of a sign if one could open an emphasis that a later one closes."""
    first_open, last_close, at_words = None, -1, set()
    for run in runs.finditer(text):
        before = text[max(run.start() - 1, 0) : run.start()]
        after = text[run.end() : run.end() + 1]
        opens = bool(after.strip()) and not (is_for_words and before.isalnum())
        closes = bool(before.strip()) and not (is_for_words and after.isalnum())
        if opens and first_open is None:
            first_open = run.start()
        if closes:
            last_close = run.start()
        if opens or closes:
            at_words.add(run.start())
    if first_open is None or last_close <= first_open:
        return text
    return runs.sub(
        lambda run: "".join(f"\\{sign}" for sign in run[0]) if run.start() in at_words else run[0],
        text,
    )
