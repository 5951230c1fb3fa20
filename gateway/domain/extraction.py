"""Prompts of document extraction: a question in words, or a JSON Schema of the result.

A prompt that begins like JSON is a schema. It is validated before the payment, because every vendor
rejects a broken schema after it. Validation covers what vendors need: valid types of keywords, an
object at the root, and a size that all of them accept.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

# A prompt has 10,000 characters at most, enough to nest 5,000 objects. Real schemas are far less
# deep.
MAX_SCHEMA_DEPTH = 12
MAX_SCHEMA_PARTS = 500
# Applies to all values, such as examples, because serializing them recurses.
_MAX_NESTING = 3 * MAX_SCHEMA_DEPTH

_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_TEXTS = ("title", "description", "format", "pattern", "$comment", "$schema", "$id", "$ref")
# Keywords with one schema, with a list of schemas, and with schemas by name.
_ONE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
# References that vendors follow: within the same schema.
_REFERENCES = ("#/$defs/", "#/definitions/")
_REFUSED = "prompt begins as JSON, but is no JSON Schema of an object that can be used: {}."


def read_schema(prompt: str) -> dict[str, Any] | None:
    """Return the JSON Schema in a prompt, or None for a question in words.

    A prompt is a schema if it begins with { or [. The schema must be an object with properties; a
    `$ref` must point into its own `$defs`. Raises `ValueError` with a message for the buyer.
    """
    if not prompt.lstrip().startswith(("{", "[")):
        return None
    try:
        schema = msgspec.json.decode(prompt)
    except RecursionError:
        raise _refusal(f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels") from None
    except (msgspec.DecodeError, ValueError):
        raise _refusal("it is not whole, valid JSON") from None
    if not isinstance(schema, dict):
        raise _refusal("it is a list, not an object")
    _check_nesting(schema)
    return _check_root(schema)


def _check_nesting(value: Any) -> None:
    level = [value]
    for _ in range(_MAX_NESTING):
        level = [part for one in level for part in _values_in(one)]
        if not level:
            return
    raise _refusal(f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels")


def _values_in(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_root(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") != "object":
        raise _refusal('its "type" is not "object"')
    for count, part in enumerate(_parts_of(schema, "the schema", 1), start=1):
        if count > MAX_SCHEMA_PARTS:
            raise _refusal(f"it has more than {MAX_SCHEMA_PARTS} parts")
        _check_reference(part, schema)
    if not schema.get("properties"):
        raise _refusal('it names no "properties"')
    return schema


def _parts_of(schema: Any, where: str, depth: int) -> Iterator[dict[str, Any]]:
    """Yield a schema and its subschemas, after checking their keywords."""
    if depth > MAX_SCHEMA_DEPTH:
        raise _refusal(f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels")
    if isinstance(schema, bool) and depth > 1:
        return
    if not isinstance(schema, dict):
        raise _refusal(f"{where} is no object")
    _check_keywords(schema, where)
    yield schema
    for name, part in _named_parts(schema, where):
        yield from _parts_of(part, name, depth + 1)


def _named_parts(schema: dict[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for keyword in (key for key in _ONE if key in schema):
        yield f'"{keyword}" of {where}', schema[keyword]
    for keyword in (key for key in _LISTS if key in schema):
        if not isinstance(schema[keyword], list):
            raise _refusal(f'"{keyword}" of {where} is no list')
        yield from ((f'a part of "{keyword}"', part) for part in schema[keyword])
    for keyword in (key for key in _NAMED if key in schema):
        if not isinstance(schema[keyword], dict):
            raise _refusal(f'"{keyword}" of {where} is no object')
        yield from ((f'a part of "{keyword}"', part) for part in schema[keyword].values())


def _check_keywords(schema: dict[str, Any], where: str) -> None:
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            raise _refusal(f'the "type" of {where} is none of {", ".join(_TYPES)}')
    for keyword in _TEXTS:
        if not isinstance(schema.get(keyword, ""), str):
            raise _refusal(f'"{keyword}" of {where} is no text')
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise _refusal(f'"required" of {where} is no list of names')
    if not isinstance(schema.get("enum", []), list):
        raise _refusal(f'"enum" of {where} is no list')


def _check_reference(part: dict[str, Any], root: dict[str, Any]) -> None:
    """Refuse external references, so that no vendor fetches a URL from a buyer."""
    if "$ref" in part and referred(part["$ref"], root) is None:
        raise _refusal('a "$ref" leads to none of its own "$defs"')


def referred(reference: str, root: dict[str, Any]) -> Any | None:
    """Return the schema that a `$ref` such as `#/$defs/Item` points to, or None."""
    for start in _REFERENCES:
        if reference.startswith(start):
            named = root.get(start.strip("#/"))
            return named.get(reference.removeprefix(start)) if isinstance(named, dict) else None
    return None


def _refusal(reason: str) -> ValueError:
    # The reason quotes none of the buyer's names. Secrets are redacted from responses, so a missing
    # word would confirm a guessed secret.
    return ValueError(_REFUSED.format(reason))
