"""Finds the parts of an HTML page that its own style hides."""

import enum
import itertools
import re
import sys
from collections.abc import Iterator

import attrs
from bs4 import BeautifulSoup
from bs4.element import PageElement, Tag

_BRACE = re.compile(r"([{}])")
_DECLARATION = re.compile(
    r"(?:^|[;\s])(display|visibility)\s*:\s*([\w-]+)\s*(!\s*important)?", re.IGNORECASE
)
# A tag, an identifier and classes, such as `p.note`; selectors of other kinds hide nothing.
_SELECTOR = re.compile(r"([a-z][a-z0-9-]*|\*)?((?:[.#][\w-]+)*)\Z", re.IGNORECASE)
_MARK = re.compile(r"[.#][\w-]+")
_COMBINATOR = re.compile(r"[\s>+~]+")
_ARGUMENT = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_PSEUDO_CLASS = re.compile(r":[\w-]*|&")
# Parts that a style sheet draws, and the root: to show them shows no element's text.
_OTHERS = re.compile(r"::|:(?:before|after|first-letter|first-line|root|host)\b", re.IGNORECASE)
_CERTAIN_MEDIA = re.compile(r"@media\s+(?:only\s+)?(?:screen|all)\s*\Z", re.IGNORECASE)
_POSSIBLE_RULE = re.compile(r"@(?:media|supports|layer|container|scope)\b", re.IGNORECASE)
_OTHER_MEDIA = re.compile(r"@media\s+(?:only\s+)?(?:print|speech)\b[^,]*\Z", re.IGNORECASE)
_HIDING = {"display": ("none",), "visibility": ("hidden", "collapse")}
# Scripts show these again once the page has loaded.
_NEVER_HIDDEN = ("html", "body")
# Sheets in these are not the page's.
_FOREIGN = ("noscript", "template", "svg")
# Sheets with more rules, or with more braces, commas and comments, are ignored.
_MAX_RULES = 5_000
_MAX_SIGNS = 200_000

_Weight = tuple[bool, bool, int, int, int]
"""Whether the declaration is important and inline, and the selector's identifiers, classes, tag."""


class _Scope(enum.IntEnum):
    """Whether rules apply to a screen."""

    NEVER = 0
    PERHAPS = 1
    ALWAYS = 2


@attrs.frozen
class _Rule:
    tag: str
    identifiers: frozenset[str]
    classes: frozenset[str]
    name: str
    hides: bool
    is_important: bool
    is_certain: bool

    @property
    def weight(self) -> _Weight:
        if not self.is_certain:
            # Only what shows an element is read in doubt, and it wins.
            return (self.is_important, False, sys.maxsize, 0, 0)
        counts = (len(self.identifiers), len(self.classes), int(bool(self.tag)))
        return (self.is_important, False, *counts)

    def fits(self, tag: Tag, classes: set[str]) -> bool:
        return (
            self.tag in ("", tag.name)
            and self.classes <= classes
            and self.identifiers <= {str(tag.get("id") or "")}
        )


def hidden_parts(soup: BeautifulSoup) -> list[PageElement]:
    """Return what `display: none` or `visibility: hidden` hides, by style or style sheet.

    Only simple selectors hide. A rule that shows an element counts if it applies perhaps: by the
    last part of its selector, and for any width of the screen.
    """
    by_key = _rules_by_key(soup)
    hidden: list[PageElement] = []
    faded: list[Tag] = []
    visible: list[Tag] = []
    for tag in soup.find_all():
        if not by_key and not tag.has_attr("style"):
            continue
        hides = _hides(tag, by_key)
        if hides.get("display"):
            hidden.append(tag)
        elif "visibility" in hides:
            (faded if hides["visibility"] else visible).append(tag)
    return [*hidden, *_without_visible(faded, visible)]


def _without_visible(faded: list[Tag], visible: list[Tag]) -> Iterator[PageElement]:
    """Yield the parts of invisible elements that contain no visible one."""
    own = {id(tag) for tag in (*faded, *visible)}
    kept: set[int] = set()
    for tag in visible if faded else ():
        around: Tag | None = tag
        while around is not None and id(around) not in kept:
            kept.add(id(around))
            around = around.parent
    waiting: list[PageElement] = list(faded)
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Tag) or id(part) not in kept:
            yield part
        else:
            waiting += [child for child in part.children if id(child) not in own]


def _rules_by_key(soup: BeautifulSoup) -> dict[str, list[_Rule]]:
    sheets = [
        (style.get_text(), _scope(f"@media {style.get('media') or 'all'}"))
        for style in soup.find_all("style")
        if style.find_parent(_FOREIGN) is None
    ]
    if sum(sheet.count(sign) for sheet, _ in sheets for sign in ("{", "}", ",", "/*")) > _MAX_SIGNS:
        return {}
    found = itertools.chain.from_iterable(itertools.starmap(_rules, sheets))
    rules = list(itertools.islice(found, _MAX_RULES + 1))
    by_key: dict[str, list[_Rule]] = {}
    for rule in rules if len(rules) <= _MAX_RULES else ():
        by_key.setdefault(min(rule.classes | rule.identifiers, default=rule.tag), []).append(rule)
    return by_key


def _rules(sheet: str, scope: _Scope) -> Iterator[_Rule]:
    """Yield the rules of a sheet and of blocks in it that apply, or perhaps apply, to a screen."""
    blocks = [("", scope)]
    pieces = _BRACE.split(_without_comments(sheet))
    for text, brace in zip(pieces[::2], pieces[1::2], strict=False):
        selectors, scope = blocks[-1]
        declarations, _, head = text.rpartition(";") if brace == "{" else (text, "", "")
        if selectors and scope:
            yield from _rules_of(selectors, declarations, scope)
        head = head.strip()
        if brace == "{" and head.startswith("@"):
            blocks.append((selectors, min(scope, _scope(head))))
        elif brace == "{":
            blocks.append((head, min(scope, _Scope.PERHAPS) if selectors else scope))
        elif len(blocks) > 1:
            blocks.pop()


def _without_comments(sheet: str) -> str:
    parts, at = [], 0
    while (start := sheet.find("/*", at)) >= 0:
        parts.append(sheet[at:start])
        end = sheet.find("*/", start + 2)
        at = end + 2 if end >= 0 else len(sheet)
    return "".join((*parts, sheet[at:]))


def _scope(at_rule: str) -> _Scope:
    if _CERTAIN_MEDIA.match(at_rule):
        return _Scope.ALWAYS
    is_possible = _POSSIBLE_RULE.match(at_rule) and not _OTHER_MEDIA.match(at_rule)
    return _Scope.PERHAPS if is_possible else _Scope.NEVER


def _rules_of(selectors: str, declarations: str, scope: _Scope) -> Iterator[_Rule]:
    # The later of two declarations counts.
    found = {
        (name.lower(), bool(important)): value.lower() in _HIDING[name.lower()]
        for name, value, important in _DECLARATION.findall(declarations)
    }
    compounds = list(_compounds(selectors, scope)) if found else []
    for (name, is_important), hides in found.items():
        for tag, marks, is_certain in compounds:
            if is_certain or not hides:
                yield _Rule(
                    tag,
                    frozenset(mark[1:] for mark in marks if mark[0] == "#"),
                    frozenset(mark[1:] for mark in marks if mark[0] == "."),
                    name,
                    hides,
                    is_important,
                    is_certain,
                )


def _compounds(selectors: str, scope: _Scope) -> Iterator[tuple[str, list[str], bool]]:
    """Yield the tag, and the classes and identifiers, that the selectors' elements have."""
    bare = _ARGUMENT.sub("&", _ARGUMENT.sub("&", selectors))
    for selector in map(str.strip, bare.split(",")):
        last = _COMBINATOR.split(selector)[-1]
        if not selector or _OTHERS.search(last):
            continue
        if found := _SELECTOR.match(_PSEUDO_CLASS.sub("", last)):
            tag = "" if found[1] in (None, "*") else found[1].lower()
            yield tag, _MARK.findall(found[2]), scope == _Scope.ALWAYS and found[0] == selector


def _hides(tag: Tag, by_key: dict[str, list[_Rule]]) -> dict[str, bool]:
    """Return, of each property that styles set, whether it hides the element."""
    if tag.name in _NEVER_HIDDEN:
        return {}
    classes = set(tag.get_attribute_list("class")) - {None}
    keys = (*classes, str(tag.get("id") or ""), tag.name, "")
    found: dict[str, tuple[_Weight, bool]] = {}
    for key in dict.fromkeys(keys):
        for rule in by_key.get(key, ()):
            if rule.fits(tag, classes):
                _take(found, rule.name, rule.weight, hides=rule.hides)
    for name, value, important in _DECLARATION.findall(str(tag.get("style") or "")):
        weight = (bool(important), True, 0, 0, 0)
        _take(found, name.lower(), weight, hides=value.lower() in _HIDING[name.lower()])
    return {name: hides for name, (_, hides) in found.items()}


def _take(
    found: dict[str, tuple[_Weight, bool]], name: str, weight: _Weight, *, hides: bool
) -> None:
    """Keep the declaration of the greater weight, and the later one of two equal ones."""
    if name not in found or found[name][0] <= weight:
        found[name] = weight, hides
