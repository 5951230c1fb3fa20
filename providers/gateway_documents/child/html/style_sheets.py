"""Finds the parts of an HTML page that its own style hides, or parts from the text around."""

import enum
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import soupsieve
from bs4.element import PageElement, Tag

_BRACE = re.compile(r"([{}])")
# Old pages hide a sheet from older browsers.
_MARKUP = re.compile("<!--|-->")
# The properties that hide an element, and the values with which they do.
_OFF_SCREEN = r"-(?:9{3,}|[5-9]\d{3}|\d{5,})(?:\.\d+)?[a-z%]*"
_HIDING = {
    "display": re.compile("none"),
    "visibility": re.compile("hidden|collapse"),
    "content-visibility": re.compile("hidden"),
    "opacity": re.compile(r"[0.]+%?"),
    "font-size": re.compile(r"[0.]+(?:[a-z]+|%)?"),
    "clip": re.compile(r"rect\((?:\s*[01](?:px|em|%)?\s*,?){4}\)"),
    "clip-path": re.compile(r"inset\((?:50|100)%.*|circle\(0.*"),
    "transform": re.compile(r"scale[xy]?\(0(?:,\s*0)?\)"),
    **dict.fromkeys(("left", "top", "text-indent"), re.compile(_OFF_SCREEN)),
}
_SIZES = ("height", "max-height", "width", "max-width")
_DECLARATION = re.compile(
    rf"(?:^|[;\s])({'|'.join((*_HIDING, *_SIZES, 'overflow'))})\s*:\s*([^;]*)", re.IGNORECASE
)
_IMPORTANT = re.compile(r"\s*!\s*important\s*\Z", re.IGNORECASE)
_ZERO = re.compile(r"[0.]+[a-z%]*")
# What moves or fades in is shown once the page has loaded, or when the reader scrolls.
_MOVES = re.compile(
    r"\b(?:transition|animation|will-change|transform(?!\s*:\s*scale))", re.IGNORECASE
)
_FADING = ("opacity", "transform", "box")
# Children may undo these.
_INHERITED = ("visibility", "font-size")
_BLOCKS = re.compile("block|flow-root|list-item|table.*")
_BOXES = re.compile("(?:inline-)?(?:flex|grid)")
# A tag, an identifier and classes, such as `p.note`; other selectors are matched more slowly.
_SELECTOR = re.compile(r"([a-z][a-z0-9-]*|\*)?((?:[.#][\w-]+)*)\Z", re.IGNORECASE)
_SELECTORS = re.compile(r"(?:[^,(\[]|\([^()]*\)|\[[^\[\]]*\])+")
# Selectors that hold whatever the reader does, and take little time.
_STATIC = re.compile(
    r"(?:[\w\s.#>+*,()-]|\[[^\[\]]*\]|:(?:is|where|not)(?=\()|:(?:first-child|last-child|empty)\b)+"
)
_MARK = re.compile(r"[.#][\w-]+")
_TAG_NAME = re.compile(r"(?:^|[\s>+(])[a-z]", re.IGNORECASE)
_COMBINATOR = re.compile(r"[\s>+~]+")
_ARGUMENT = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_BRACKET = re.compile(r"[()\[\]]")
_PSEUDO_CLASS = re.compile(r":[\w-]*|&")
# Parts that a style sheet draws, and the root: to show them shows no element's text.
_OTHERS = re.compile(r"::|:(?:before|after|first-letter|first-line|root|host)\b", re.IGNORECASE)
_CERTAIN_MEDIA = re.compile(r"@media\s+(?:only\s+)?(?:screen|all)\s*\Z", re.IGNORECASE)
_CERTAIN_RULE = re.compile(r"@(?:layer|supports(?!.*\bnot\b))\b", re.IGNORECASE)
_POSSIBLE_RULE = re.compile(r"@(?:media|supports|container|scope)\b", re.IGNORECASE)
_OTHER_MEDIA = re.compile(r"@media\s+(?:only\s+)?(?:print|speech)\b[^,]*\Z", re.IGNORECASE)
# Scripts show these again once the page has loaded.
_NEVER_HIDDEN = ("html", "body")
# Sheets in these are not the page's.
_FOREIGN = ("noscript", "template", "svg")
# Sheets with more rules, or with more braces, commas and comments, are ignored.
_MAX_RULES = 5_000
_MAX_SIGNS = 200_000
# Comparisons of an element with a selector of the slower kind.
_MAX_MATCHES = 10_000
_MAX_SELECTOR = 500

_Weight = tuple[bool, bool, int, int, int]
"""Whether the declaration is important and inline, and the selector's identifiers, classes, tag."""


class _Scope(enum.IntEnum):
    """Whether rules apply to a screen."""

    NEVER = 0
    PERHAPS = 1
    ALWAYS = 2


class _Effect(enum.Enum):
    """The effect of a declaration."""

    HIDE = enum.auto()
    SHOW = enum.auto()
    BLOCK = enum.auto()
    """The element begins and ends a line."""
    BOX = enum.auto()
    """Each child begins and ends a line or a column."""


_Declared = Mapping[str, tuple[_Effect, bool]]
"""The effect of each property, and whether it is important."""


@attrs.frozen
class _Rule:
    tag: str
    identifiers: frozenset[str]
    classes: frozenset[str]
    selector: soupsieve.SoupSieve | None
    """The whole selector if it is more than the former three."""
    specificity: tuple[int, int, int]
    name: str
    effect: _Effect
    is_important: bool
    is_certain: bool

    @property
    def weight(self) -> _Weight:
        if not self.is_certain:
            # Only what shows an element is read in doubt, and it wins.
            return (self.is_important, False, sys.maxsize, 0, 0)
        return (self.is_important, False, *self.specificity)

    def fits(self, tag: Tag, classes: set[str]) -> bool:
        return (
            self.tag in ("", tag.name)
            and self.classes <= classes
            and self.identifiers <= {str(tag.get("id") or "")}
        )


@attrs.define
class _Sheet:
    """The rules of a page by tag, class or identifier."""

    by_key: dict[str, list[_Rule]]
    _left: int = attrs.field(default=_MAX_MATCHES, init=False)

    def effects_on(self, tag: Tag) -> Iterator[tuple[_Rule, _Effect]]:
        """Yield the rules for an element, and what each does to it."""
        classes = set(tag.get_attribute_list("class")) - {None}
        keys = (*classes, str(tag.get("id") or ""), tag.name, "")
        for key in dict.fromkeys(keys):
            for rule in self.by_key.get(key, ()):
                if not rule.fits(tag, classes):
                    continue
                if rule.selector is None or self._matches(rule.selector, tag):
                    yield rule, rule.effect
                elif rule.effect != _Effect.HIDE:
                    yield rule, _Effect.SHOW

    def _matches(self, selector: soupsieve.SoupSieve, tag: Tag) -> bool:
        self._left -= 1
        return self._left >= 0 and selector.match(tag)


@attrs.define
class Styled:
    """The elements of a page to which its style does more than colour."""

    hidden: list[PageElement] = attrs.field(factory=list)
    blocks: list[Tag] = attrs.field(factory=list)
    """Elements that begin and end a line or a column."""


def styled(tags: Sequence[Tag]) -> Styled:
    """Return what the style of a page, of these tags, hides and parts from the text around.

    A rule that shows an element counts if it applies perhaps: by the last part of its selector,
    and for any width of the screen. Every other rule counts if it applies for certain.
    """
    sheet = _sheet(tags)
    found = Styled()
    faded: dict[str, list[Tag]] = {name: [] for name in _INHERITED}
    visible: dict[str, list[Tag]] = {name: [] for name in _INHERITED}
    for tag in tags:
        if not sheet.by_key and not tag.has_attr("style"):
            continue
        effects = _effects(tag, sheet)
        if any(effects[name] == _Effect.HIDE for name in effects if name not in _INHERITED):
            found.hidden.append(tag)
            continue
        for name in _INHERITED:
            if name in effects:
                (faded if effects[name] == _Effect.HIDE else visible)[name].append(tag)
        if effects.get("display") == _Effect.BLOCK:
            found.blocks.append(tag)
        elif effects.get("display") == _Effect.BOX:
            found.blocks += [tag, *(child for child in tag.children if isinstance(child, Tag))]
    for name in _INHERITED:
        found.hidden += _without_visible(faded[name], visible[name])
    return found


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


def _sheet(tags: Iterable[Tag]) -> _Sheet:
    sheets = [
        (style.get_text(), _scope(f"@media {style.get('media') or 'all'}"))
        for style in tags
        if style.name == "style" and style.find_parent(_FOREIGN) is None
    ]
    if sum(sheet.count(sign) for sheet, _ in sheets for sign in ("{", "}", ",", "/*")) > _MAX_SIGNS:
        return _Sheet({})
    found = itertools.chain.from_iterable(itertools.starmap(_rules, sheets))
    rules = list(itertools.islice(found, _MAX_RULES + 1))
    by_key: dict[str, list[_Rule]] = {}
    for rule in rules if len(rules) <= _MAX_RULES else ():
        by_key.setdefault(min(rule.classes | rule.identifiers, default=rule.tag), []).append(rule)
    return _Sheet(by_key)


def _rules(sheet: str, scope: _Scope) -> Iterator[_Rule]:
    """Yield the rules of a sheet and of blocks in it that apply, or perhaps apply, to a screen."""
    blocks = [("", scope)]
    pieces = _BRACE.split(_MARKUP.sub(" ", _without_comments(sheet)))
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
    if _CERTAIN_MEDIA.match(at_rule) or _CERTAIN_RULE.match(at_rule):
        return _Scope.ALWAYS
    is_possible = _POSSIBLE_RULE.match(at_rule) and not _OTHER_MEDIA.match(at_rule)
    return _Scope.PERHAPS if is_possible else _Scope.NEVER


def _rules_of(selectors: str, declarations: str, scope: _Scope) -> Iterator[_Rule]:
    declared = _declared(declarations)
    for one in _compounds(selectors, scope) if declared else ():
        for name, (effect, is_important) in declared.items():
            if effect == _Effect.HIDE and one.is_certain:
                yield attrs.evolve(one, name=name, effect=effect, is_important=is_important)
            elif effect != _Effect.HIDE:
                # Scripts add classes that a longer selector needs.
                is_certain = one.is_certain and one.selector is None
                shown = effect if one.is_certain else _Effect.SHOW
                yield attrs.evolve(
                    one, name=name, effect=shown, is_important=is_important, is_certain=is_certain
                )


def _declared(block: str) -> _Declared:
    """Return the effects of a block of declarations; the later of two of a property counts."""
    values: dict[str, tuple[str, bool]] = {}
    for name, value in _DECLARATION.findall(block):
        plain = _IMPORTANT.sub("", value)
        if plain != value or not values.get(name.lower(), ("", False))[1]:
            values[name.lower()] = (plain.strip().lower(), plain != value)
    found = {
        name: (_effect(name, *values[name][:1]), values[name][1])
        for name in values
        if name in _HIDING
    }
    sizes = [values[name] for name in _SIZES if name in values]
    if sizes:
        is_cut = values.get("overflow", ("", False))[0] in ("hidden", "clip")
        is_empty = is_cut and any(_ZERO.fullmatch(size) for size, _ in sizes)
        found["box"] = (_Effect.HIDE if is_empty else _Effect.SHOW, sizes[0][1])
    if _MOVES.search(block):
        found = {name: one for name, one in found.items() if name not in _FADING}
    return found


def _effect(name: str, value: str) -> _Effect:
    if _HIDING[name].fullmatch(value):
        return _Effect.HIDE
    if name == "display" and _BLOCKS.fullmatch(value):
        return _Effect.BLOCK
    return _Effect.BOX if name == "display" and _BOXES.fullmatch(value) else _Effect.SHOW


def _compounds(selectors: str, scope: _Scope) -> Iterator[_Rule]:
    """Yield a rule without its effect for each selector, by the last part of it."""
    for bare, selector in _split(selectors):
        last = _COMBINATOR.split(bare)[-1]
        if not bare or _OTHERS.search(last):
            continue
        if found := _SELECTOR.match(_PSEUDO_CLASS.sub("", last)):
            is_simple = found[0] == bare
            compiled = None if is_simple or scope != _Scope.ALWAYS else _compiled(selector)
            marks = _MARK.findall(found[2])
            yield _Rule(
                "" if found[1] in (None, "*") else found[1].lower(),
                frozenset(mark[1:] for mark in marks if mark[0] == "#"),
                frozenset(mark[1:] for mark in marks if mark[0] == "."),
                compiled,
                _specificity(selector),
                "",
                _Effect.SHOW,
                is_important=False,
                is_certain=scope == _Scope.ALWAYS and (is_simple or compiled is not None),
            )


def _split(selectors: str) -> Iterator[tuple[str, str]]:
    """Yield each selector without its arguments and whole; it is empty if brackets are nested."""
    bare = _ARGUMENT.sub("&", selectors)
    if _BRACKET.search(bare):
        yield from ((one.strip(), "") for one in _ARGUMENT.sub("&", bare).split(","))
    else:
        wholes = map(str.strip, _SELECTORS.findall(selectors))
        yield from ((_ARGUMENT.sub("&", whole), whole) for whole in wholes)


def _specificity(selector: str) -> tuple[int, int, int]:
    """Return how many identifiers, classes and tags a selector names."""
    classes = sum(map(selector.count, ".[")) + len(re.findall(r":(?!is|where|not)", selector))
    return selector.count("#"), classes, len(_TAG_NAME.findall(selector))


def _compiled(selector: str) -> soupsieve.SoupSieve | None:
    if len(selector) > _MAX_SELECTOR or not _STATIC.fullmatch(selector):
        return None
    try:
        return soupsieve.compile(selector)
    except soupsieve.SelectorSyntaxError:
        return None


def _effects(tag: Tag, sheet: _Sheet) -> dict[str, _Effect]:
    """Return the effect of each property that styles set."""
    if tag.name in _NEVER_HIDDEN:
        return {}
    found: dict[str, tuple[_Weight, _Effect]] = {}
    for rule, effect in sheet.effects_on(tag):
        _take(found, rule.name, rule.weight, effect)
    for name, (effect, is_important) in _declared(str(tag.get("style") or "")).items():
        _take(found, name, (is_important, True, 0, 0, 0), effect)
    return {name: effect for name, (_, effect) in found.items()}


def _take(
    found: dict[str, tuple[_Weight, _Effect]], name: str, weight: _Weight, effect: _Effect
) -> None:
    """Keep the declaration of the greater weight, and the later one of two equal ones."""
    if name not in found or found[name][0] <= weight:
        found[name] = weight, effect
