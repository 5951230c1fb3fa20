"""Fills a buyer's values into the shape of a request, and finds values in a JSON answer.

A shape is filled before it is encoded, so a value stays one text, whatever it contains.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway import SettingsError

PLACES = ("prompt", "width", "height", "seed", "task", "file_base64", "file_name")
_PLACE = re.compile(rf"\{{({'|'.join(PLACES)})\}}")
# Anything that is meant as a place.
_BRACES = re.compile(r"\{([A-Za-z_0-9]*)\}")
_SECRET = re.compile(r"\$\{([^{}]*)\}")
# The log hides values of variables with such names.
_SECRET_NAME = re.compile(r"[A-Z][A-Z0-9_]*(KEY|TOKEN|SECRET|PASSWORD)")
_MIN_SECRET_CHARS = 8
_STEP = re.compile(r"([A-Za-z0-9_-]+)|\[(\d{1,6})\]")
_PATH = re.compile(r"([A-Za-z0-9_-]+|\[\d{1,6}\])(\.[A-Za-z0-9_-]+|\[\d{1,6}\])*")


def filled(shape: Any, values: Mapping[str, Any]) -> Any:
    """Fill the places of a shape; a string that is exactly one place becomes its value."""
    if isinstance(shape, dict):
        return {key: filled(one, values) for key, one in shape.items()}
    if isinstance(shape, list):
        return [filled(one, values) for one in shape]
    if not isinstance(shape, str):
        return shape
    whole = _PLACE.fullmatch(shape)
    return values[whole[1]] if whole else _PLACE.sub(lambda found: str(values[found[1]]), shape)


def find(value: Any, path: str) -> Any:
    """Return the value at a path such as `images[0].data`; None if there is none."""
    for name, number in _STEP.findall(path):
        if number:
            is_there = isinstance(value, list) and int(number) < len(value)
            value = value[int(number)] if is_there else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def is_path(text: str) -> bool:
    """Whether a text is such a path."""
    return _PATH.fullmatch(text) is not None


def places_in(shape: Any) -> set[str]:
    """Return the places of a shape; raises `SettingsError` for one that does not exist."""
    found = set()
    for text, is_key in _texts_in(shape):
        if _SECRET.search(text):
            raise SettingsError("a secret such as ${NAME} belongs into request.headers")
        for name in _BRACES.findall(text):
            if is_key or name not in PLACES:
                known = ", ".join(f"{{{one}}}" for one in PLACES)
                raise SettingsError(f"{{{name}}} is no place of a value; places are {known}")
            found.add(name)
    return found


def _texts_in(shape: Any) -> Iterator[tuple[str, bool]]:
    """Yield every text of a shape, and whether it is a key."""
    if isinstance(shape, str):
        yield shape, False
    elif isinstance(shape, dict):
        for key, one in shape.items():
            yield key, True
            yield from _texts_in(one)
    elif isinstance(shape, list):
        for one in shape:
            yield from _texts_in(one)


def refuse_places(where: str, text: str, *, allowed: tuple[str, ...] = ()) -> None:
    """Raise `SettingsError` for a place, or a secret, in a text that goes into no body."""
    for name in _BRACES.findall(_SECRET.sub("", text)):
        if name not in allowed:
            raise SettingsError(
                f"{where} has the place {{{name}}}, and a buyer's value may be in the body only"
            )
    if "headers" not in where and _SECRET.search(text):
        raise SettingsError(f"{where} has a secret, which belongs into request.headers")


def with_secrets(where: str, text: str) -> str:
    """Fill secrets such as `${ACME_KEY}` from the environment; raises `SettingsError`."""
    return _SECRET.sub(lambda found: _read_secret(where, found[1]), text)


def _read_secret(where: str, name: str) -> str:
    if name.startswith("GATEWAY_"):
        raise SettingsError(f"{where}: {name} is a setting of the gateway, which no server may get")
    if _SECRET_NAME.fullmatch(name) is None:
        raise SettingsError(
            f"{where}: ${{{name}}} must end in KEY, TOKEN, SECRET or PASSWORD, because the log "
            "hides the values of such variables"
        )
    value = os.environ.get(name, "")
    if not value:
        raise SettingsError(f"{where}: the environment variable {name} is not set")
    if len(value) < _MIN_SECRET_CHARS:
        raise SettingsError(
            f"{where}: {name} has fewer than {_MIN_SECRET_CHARS} characters, which the log would "
            "not hide"
        )
    return value
