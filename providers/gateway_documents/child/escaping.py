"""Escapes characters of a document that Markdown would take for its own signs.

Only what would change the meaning is escaped: `5 * 3`, `snake_case` and `a < b` stay as they are.
"""

import html.entities
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict

_ANY = re.compile(r"[\\\]&<`*_~]")
# A backslash before punctuation, the middle of a link, and what could be an entity.
_ALWAYS = (
    r"\\(?=[!-/:-@\[-`{-~\n]|\Z)|\](?=\()"
    r"|&(?=(#\d{1,7};|#[xX][\da-fA-F]{1,6};|[A-Za-z][A-Za-z\d]{0,31};))"
)
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
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])|`+")
_TICKS = re.compile(r"`+")


def inline(text: str) -> str:
    """Return a text of one paragraph, heading or cell that Markdown shows as it is."""
    if not _ANY.search(text):
        return text
    text = _PATTERNS[">" in text, text.count("`") > 1].sub(_with_backslash, text)
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
    """Return a cell's Markdown without the backslashes before signs.

    Backslashes in code stay, except those of a table's pipes.
    """
    if "\\" not in markdown:
        return markdown
    starts_by_length: dict[int, list[int]] = defaultdict(list)
    for run in _TICKS.finditer(markdown):
        starts_by_length[len(run[0])].append(run.start())
    parts, at = [], 0
    while found := _ESCAPED.search(markdown, at):
        parts.append(markdown[at : found.start()])
        at = found.end()
        if found[1]:
            parts.append(found[1])
            continue
        ends = starts_by_length[len(found[0])]
        if (place := bisect_left(ends, at)) < len(ends):
            at = ends[place] + len(found[0])
        parts.append(markdown[found.start() : at].replace("\\|", "|"))
    return "".join((*parts, markdown[at:]))


def _with_backslash(found: re.Match[str]) -> str:
    name = found[1]
    is_entity = not name or name[0] == "#" or name in html.entities.html5
    return f"\\{found[0]}" if is_entity else found[0]


def _escaped_sign(found: re.Match[str]) -> str:
    return f"{found[0][:-1]}\\{found[0][-1]}"


def _without_emphasis(text: str, runs: re.Pattern[str], *, is_for_words: bool) -> str:
    """Escape the runs of a sign if one could open an emphasis that a later one closes."""
    first_open, last_close, at_words = None, -1, set()
    for run in runs.finditer(text):
        before = text[max(run.start() - 1, 0) : run.start()]
        after = text[run.end() : run.end() + 1]
        opens, closes = _flanks(before, after), _flanks(after, before)
        if is_for_words and opens and closes:
            opens, closes = _is_punctuation(before), _is_punctuation(after)
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


def _flanks(outside: str, inside: str) -> bool:
    """Whether a run can open or close an emphasis: CommonMark's rule of its two neighbours."""
    if not inside.strip():
        return False
    return not _is_punctuation(inside) or not outside.strip() or _is_punctuation(outside)


def _is_punctuation(char: str) -> bool:
    return bool(char) and unicodedata.category(char)[0] in "PS"
