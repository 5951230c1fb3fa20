"""Fills a JSON Schema with a document's facts: a property gets the value of a similar label."""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from gateway_documents.child.extraction.facts import Facts, to_date, to_number

# A schema may refer to itself, and each value takes a search.
_MAX_VALUES = 2_000
_MAX_DEPTH = 12
_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[^\W\d_]+|\d+")
_TRUE, _FALSE = ("yes", "true", "x"), ("no", "false")


@attrs.define
class Filler:
    """Fills one schema; properties without a similar label are null."""

    root: Mapping[str, Any]
    facts: Facts
    _left: int = attrs.field(default=_MAX_VALUES, init=False)

    def fill(self) -> dict[str, Any]:
        """Return an object with every property of the schema."""
        return self._object(self.root, self.facts.values, 0)

    def _object(
        self, schema: Mapping[str, Any], values: Mapping[str, str], depth: int
    ) -> dict[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        return {name: self._value(name, one, values, depth) for name, one in properties.items()}

    def _value(self, name: str, schema: Any, values: Mapping[str, str], depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            return None
        schema = self._resolve(schema)
        kind = _kind_of(schema)
        if kind == "object":
            return self._object(schema, values, depth + 1)
        if kind == "array":
            return self._array(name, schema, depth)
        text = _like(name, values)
        if text is None and words_of(name) == ("title",):
            text = self.facts.title
        return None if text is None else _convert(text, kind, schema)

    def _array(self, name: str, schema: Mapping[str, Any], depth: int) -> list[Any] | None:
        items = self._resolve(schema.get("items"))
        if _kind_of(items) == "object":
            wanted = items.get("properties") or {}
            table = max(self.facts.tables, key=lambda one: _shared(one, wanted), default=[])
            if not _shared(table, wanted):
                return None
            return [self._object(items, row, depth + 1) for row in table if self._left > 0]
        texts = self._list(name)
        return texts and [_convert(text, _kind_of(items), items) for text in texts]

    def _list(self, name: str) -> list[str] | None:
        """Return a table's column, or all facts of a kind."""
        for table in self.facts.tables:
            if table and _like(name, table[0]) is not None:
                return [_like(name, row) or "" for row in table]
        kinds = {
            "heading": self.facts.headings,
            "date": self.facts.dates,
            "amount": self.facts.amounts,
        }
        return next((kinds[word] for word in words_of(name) if kinds.get(word)), None)

    def _resolve(self, schema: Any) -> Mapping[str, Any]:
        """Resolve references and choices: to the first one that is not null."""
        for _ in range(_MAX_DEPTH):
            if not isinstance(schema, dict):
                return {}
            reference = schema.get("$ref")
            choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
            if isinstance(reference, str):
                _, where, name = reference.split("/", 2)
                schema = self.root[where][name]
            elif choices:
                schema = next((one for one in choices if _kind_of(one) != "null"), {})
            else:
                return schema
        return {}


@functools.cache
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name such as `dueDate` or `Billed to`, in lower case and singular."""
    return tuple(word.lower().removesuffix("s") for word in _WORD.findall(name))


def _like(name: str, values: Mapping[str, str]) -> str | None:
    wanted = words_of(name)
    ranked = ((rank, value) for label, value in values.items() if (rank := _rank(wanted, label)))
    return min(ranked, key=lambda one: one[0], default=(None, None))[1]


def _rank(wanted: tuple[str, ...], label: str) -> tuple[int, int] | None:
    """Rank a label: lower is better, None does not fit."""
    words = words_of(label)
    if not wanted or not words:
        return None
    if wanted == words:
        return (0, 0)
    if set(wanted) <= set(words):
        return (1, len(words))
    # `due_date` matches `Due` better than `Date`.
    return (2, wanted.index(words[0])) if set(words) <= set(wanted) else None


def _shared(table: Iterable[Mapping[str, str]], wanted: Mapping[str, Any]) -> int:
    row = next(iter(table), {})
    return sum(_like(name, row) is not None for name in wanted)


def _kind_of(schema: Any) -> str:
    """Return the type, ignoring null; `string` by default."""
    kinds = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kinds, list):
        kinds = next((kind for kind in kinds if kind != "null"), "null")
    if kinds is None and isinstance(schema, dict) and schema.get("properties"):
        return "object"
    return kinds if isinstance(kinds, str) else "string"


def _convert(text: str, kind: str, schema: Mapping[str, Any]) -> Any:
    """Convert a text; None if it does not fit."""
    value: Any = text
    if kind == "number":
        value = to_number(text)
    elif kind == "integer":
        number = to_number(text)
        value = number if isinstance(number, int) else None
    elif kind == "boolean":
        value = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.lower())
    elif kind == "null":
        value = None
    elif schema.get("format") == "date":
        value = to_date(text)
    return value if "enum" not in schema or value in schema["enum"] else None
