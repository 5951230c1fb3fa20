"""Compares extracted data with the buyer's JSON Schema.

Only keywords that a step into the data accompanies are followed, so the time depends on the data
alone, whatever the schema. Patterns and formats are not checked: a buyer's pattern could take
hours.
"""

from collections.abc import Iterator
from typing import Any

from gateway.domain.extraction import MAX_SCHEMA_DEPTH, referred

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "null": (),
}
# Keywords by which an object may have right fields that its `properties` do not name.
_MORE_FIELDS = (
    *("patternProperties", "additionalProperties", "unevaluatedProperties", "dependentSchemas"),
    *("allOf", "anyOf", "oneOf", "if", "then", "else", "$ref"),
)


def has_values(found: Any) -> bool:
    """Whether extracted data has a value. Null and blank texts are none.

    An empty list is an answer, unless null or a blank text is beside it.
    """
    leaves = list(_leaves_of(found))
    if any(not _is_blank(leaf) and leaf != [] for leaf in leaves):
        return True
    return bool(leaves) and all(leaf == [] for leaf in leaves)


def _leaves_of(found: Any) -> Iterator[Any]:
    """Yield every value that contains no other; an object without fields has none."""
    waiting = [found]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list) and value:
            waiting.extend(value)
        else:
            yield value


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def find_mismatch(found: dict[str, Any], schema: dict[str, Any]) -> str | None:
    """Return in words where data does not follow its schema, or None. Null fits everywhere."""
    if not _has_named_field(found, schema):
        return "it has none of the fields"
    waiting: list[tuple[Any, Any, str]] = [(found, schema, "the result")]
    while waiting:
        value, part, where = waiting.pop()
        part = _follow(part, schema)
        if value is None or not isinstance(part, dict):
            continue
        if problem := _find_wrong_kind(value, part):
            return f"{where} is not {problem}"
        waiting.extend(_pairs_in(value, part))
    return None


def _has_named_field(found: dict[str, Any], schema: dict[str, Any]) -> bool:
    if any(schema.get(keyword, False) is not False for keyword in _MORE_FIELDS):
        return True
    named = schema.get("properties")
    return not isinstance(named, dict) or not named.keys().isdisjoint(found)


def _follow(part: Any, root: dict[str, Any]) -> Any:
    """Return the schema behind a chain of references."""
    for _ in range(MAX_SCHEMA_DEPTH):
        if not isinstance(part, dict) or not isinstance(part.get("$ref"), str):
            return part
        part = referred(part["$ref"], root)
    return None


def _find_wrong_kind(value: Any, part: dict[str, Any]) -> str | None:
    """Return the expected type or values if the value is of none of them."""
    kinds = part.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        return f"of type {' or '.join(map(str, kinds))}"
    values = part.get("enum")
    is_right = not isinstance(values, list) or value in values
    return None if is_right else "one of the schema's values"


def _is_of(value: Any, kind: Any) -> bool:
    if kind != "boolean" and isinstance(value, bool):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, (object,)))


def _pairs_in(value: Any, part: dict[str, Any]) -> Iterator[tuple[Any, Any, str]]:
    """Yield the values inside a value, each with its schema."""
    if isinstance(value, dict) and isinstance(named := part.get("properties"), dict):
        yield from ((value[name], named[name], "a field") for name in named.keys() & value.keys())
    if isinstance(value, list):
        # `items` describes the entries after those that have a schema of their own.
        first, items = part.get("prefixItems"), part.get("items")
        rest = value[len(first) :] if isinstance(first, list) else value
        yield from ((entry, items, "an entry of a list") for entry in rest)
