"""Finds the elements of an HTML page that its own style hides."""

import re
from collections.abc import Iterator

import attrs
from bs4 import BeautifulSoup
from bs4.element import Tag

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_RULE = re.compile(r"([^{}]*)([{}])")
_DECLARATION = re.compile(
    r"(?:^|[;\s])(display|visibility)\s*:\s*([\w-]+)\s*(!\s*important)?", re.IGNORECASE
)
# A tag, an identifier and classes, such as `p.note`; selectors of other kinds hide nothing.
_SELECTOR = re.compile(r"([a-z][a-z0-9-]*|\*)?((?:[.#][\w-]+)*)\Z", re.IGNORECASE)
_MEDIA = re.compile(r"@media\s+(?:only\s+)?(?:screen|all)\s*\Z", re.IGNORECASE)
_HIDING = {"display": ("none",), "visibility": ("hidden", "collapse")}
# Scripts show these again once the page has loaded.
_NEVER_HIDDEN = ("html", "body")
_MAX_RULES = 2_000

_Weight = tuple[bool, bool, int, int, int]
"""Whether the declaration is important and inline, and the selector's identifiers, classes, tag."""


@attrs.frozen
class _Rule:
    tag: str
    identifiers: frozenset[str]
    classes: frozenset[str]
    name: str
    hides: bool
    is_important: bool

    @property
    def weight(self) -> _Weight:
        counts = (len(self.identifiers), len(self.classes), int(bool(self.tag)))
        return (self.is_important, False, *counts)

    def fits(self, tag: Tag, classes: set[str]) -> bool:
        return (
            self.tag in ("", tag.name)
            and self.classes <= classes
            and self.identifiers <= {str(tag.get("id") or "")}
        )


def hidden_elements(soup: BeautifulSoup) -> list[Tag]:
    """Return the elements with `display: none` or `visibility: hidden`, by style or style sheet."""
    rules = [rule for style in soup.find_all("style") for rule in _rules(style.get_text())]
    by_key: dict[str, list[_Rule]] = {}
    for rule in rules[:_MAX_RULES]:
        by_key.setdefault(min(rule.classes | rule.identifiers, default=rule.tag), []).append(rule)
    return [
        tag
        for tag in soup.find_all()
        if (by_key or tag.has_attr("style")) and _is_hidden(tag, by_key)
    ]


def _rules(sheet: str) -> Iterator[_Rule]:
    """Yield the rules for all screens; those inside other at-rules are left out."""
    blocks: list[bool] = []
    head = ""
    for text, brace in _RULE.findall(_COMMENT.sub("", sheet)):
        if brace == "{":
            head = text.rpartition(";")[2].strip()
            is_plain = not head.startswith("@")
            blocks.append(all(blocks) and (is_plain or bool(_MEDIA.match(head))))
        elif blocks:
            if blocks.pop() and not head.startswith("@"):
                yield from _rules_of(head, text)
            head = "@"


def _rules_of(selectors: str, declarations: str) -> Iterator[_Rule]:
    for name, value, important in _DECLARATION.findall(declarations):
        hides = value.lower() in _HIDING[name.lower()]
        for selector in selectors.split(","):
            if (found := _SELECTOR.match(selector.strip())) and found[0]:
                marks = re.findall(r"[.#][\w-]+", found[2])
                yield _Rule(
                    "" if found[1] in (None, "*") else found[1].lower(),
                    frozenset(mark[1:] for mark in marks if mark[0] == "#"),
                    frozenset(mark[1:] for mark in marks if mark[0] == "."),
                    name.lower(),
                    hides,
                    bool(important),
                )


def _is_hidden(tag: Tag, by_key: dict[str, list[_Rule]]) -> bool:
    if tag.name in _NEVER_HIDDEN:
        return False
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
    return any(hides for _, hides in found.values())


def _take(
    found: dict[str, tuple[_Weight, bool]], name: str, weight: _Weight, *, hides: bool
) -> None:
    """Keep the declaration of the greater weight, and the later one of two equal ones."""
    if name not in found or found[name][0] <= weight:
        found[name] = weight, hides
