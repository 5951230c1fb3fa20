"""Requests and responses of the JSON API: names in camelCase, amounts in units."""

import enum
import re
from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

import attrs
from quart import Response, request

from gateway.errors import ValidationError
from gateway.web import bodies
from gateway.web.front.answers import NOT_STORED, json_answer
from gateway.web.front.current import current_gateway
from gateway_operator.desk.references import shorten_ids

API = "/admin/api/v1"
# `before` requests the next page.
MAX_ROWS = 200
_ROWS = 50
# Typed by operators, so not redacted: a removed secret would confirm a guess.
_TYPED = ("reason", "pauseReason", "note", "subject", "actor", "name", "muteReason")
# Ids of vendors and requests, which give no access here.
_WHOLE = ("jobId", "requestId")
_WORD = re.compile(r"_([a-z0-9])")
_MAX_ID = 2**63 - 1


def answer(value: Any, status: int = HTTPStatus.OK) -> Response:
    """Return the JSON response, without secrets and full task ids."""
    return json_answer(_make_readable(to_json(value)), status, NOT_STORED).to_response()


def _make_readable(value: Any, name: str = "") -> Any:
    """Shorten task ids, and redact secrets except in typed fields; `name` is the value's field."""
    if isinstance(value, dict):
        return {each: _make_readable(inner, each) for each, inner in value.items()}
    if isinstance(value, list):
        return [_make_readable(inner, name) for inner in value]
    if not isinstance(value, str) or name in _WHOLE:
        return value
    clean = value if name in _TYPED else current_gateway().redactor.without_secrets(value)
    # An id in the request's path is not shortened.
    return shorten_ids(clean, request.path)


def to_json(value: Any) -> Any:
    """Convert a value to JSON: attrs classes become objects with their public properties.

    Raises `TypeError` for any other object.
    """
    if value is None or isinstance(value, str | int | float):
        return value.value if isinstance(value, enum.Enum) else value
    if attrs.has(type(value)):
        return {_camel(name): to_json(getattr(value, name)) for name in _names_of(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_json(each) for key, each in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
        return [to_json(each) for each in value]
    raise TypeError(f"{type(value).__name__} is no data")


def _names_of(kind: type) -> list[str]:
    fields = [field.name for field in attrs.fields(kind)]
    properties = [
        name
        for base in reversed(kind.__mro__)
        for name, each in vars(base).items()
        if isinstance(each, property)
    ]
    return [name for name in dict.fromkeys(fields + properties) if not name.startswith("_")]


def _camel(name: str) -> str:
    return _WORD.sub(lambda found: found[1].upper(), name)


async def read_body(*names: str, needed: Collection[str] = ()) -> dict[str, Any]:
    """Return the request's JSON object; an empty body is an empty object.

    Raises `ValidationError` for an unknown field, and for a missing one of `needed`.
    """
    data = cast(bytes, await request.get_data(as_text=False))
    body = dict(bodies.read_object(data)) if data else {}
    unknown = sorted(set(body) - set(names))
    if unknown:
        # The field is not quoted: it is user input.
        raise ValidationError(f"The body may hold {', '.join(names) or 'nothing'}; no other field.")
    for name in needed:
        if body.get(name) is None:
            raise ValidationError(f"{name} is missing.")
    return body


def text_of(body: Mapping[str, Any], name: str, *, most_chars: int = 500) -> str:
    """Return a string of the body, empty if missing; raises `ValidationError`."""
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > most_chars:
        raise ValidationError(f"{name} must be a string of at most {most_chars} characters.")
    return value


def whole_of(body: Mapping[str, Any], name: str) -> int | None:
    """Return a non-negative integer of the body, or None; raises `ValidationError`."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_ID:
        raise ValidationError(f"{name} must be a whole number, 0 or more.")
    return value


def flag_of(body: Mapping[str, Any], name: str) -> bool:
    """Return a boolean of the body, False if missing; raises `ValidationError`."""
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise ValidationError(f"{name} must be true or false.")
    return value


def page_asked_for() -> tuple[int | None, int]:
    """Return `before` and `limit` of the query; raises `ValidationError`."""
    before, limit = _number("before", 1, _MAX_ID), _number("limit", 1, MAX_ROWS)
    return before, limit if limit is not None else _ROWS


def _number(name: str, least: int, most: int) -> int | None:
    text = request.args.get(name)
    if text is None:
        return None
    is_whole = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not is_whole or not least <= int(text) <= most:
        raise ValidationError(f"{name} must be a whole number from {least:,} to {most:,}.")
    return int(text)
