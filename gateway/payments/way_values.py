"""Checks values that a way to pay returns, before they become part of an answer."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.concurrency.fence import Owner
from gateway.contracts import Challenge

_HEADER = re.compile(r"[A-Za-z0-9-]+")
# Proxies refuse longer headers.
_MAX_HEADERS_CHARS = 8_192
_MAX_BODY_BYTES = 65_536
_TYPE = "content-type"
# These frame the answer, and belong to the server.
_RESERVED = frozenset(
    {
        *("connection", "content-encoding", "content-length", "content-range", "date"),
        *("keep-alive", "location", "proxy-connection", "set-cookie", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
# Headers with a list, to which several ways may add.
_LISTS = frozenset({"www-authenticate", "link", "vary", "cache-control"})


def owner_of(way: Any) -> Owner:
    """Return the plugin of a way to pay, and the method's name, if any."""
    kind = way if isinstance(way, type) else type(way)
    return Owner(kind.__module__.partition(".")[0], getattr(way, "name", ""))


def checked_headers(headers: Any) -> Mapping[str, str]:
    """Return headers of an answer; raises `TypeError` or `ValueError` if one cannot be sent."""
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers are a {type(headers).__name__}, no mapping")
    for name, value in headers.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise TypeError(f"the header {name!r} is no text")
        if not (_HEADER.fullmatch(name) and value.isascii() and value.isprintable()):
            raise ValueError(f"{name!r} cannot be a header of an answer")
        if name.lower() in _RESERVED:
            raise ValueError(f"the header {name} belongs to the server")
    if sum(len(name) + len(value) for name, value in headers.items()) > _MAX_HEADERS_CHARS:
        raise ValueError(f"the headers have more than {_MAX_HEADERS_CHARS} characters")
    return headers


def checked_challenge(made: Any) -> Challenge:
    """Return the 402 of the first verifier; raises for one that cannot be sent."""
    if not isinstance(made, Challenge):
        raise TypeError(f"challenge returns a {type(made).__name__}, no gateway.Challenge")
    checked_headers(made.headers)
    _check_body(made.body)
    return made


def merged(made: Challenge, added: Any, *, is_refused: bool) -> Challenge:
    """Return a 402 with the headers of a further way.

    The body's members are added if its payment was refused. Raises for values that cannot be sent,
    or that would replace another way's.
    """
    checked_challenge(added)
    headers = dict(made.headers)
    names = {name.lower(): name for name in headers}
    for name, value in added.headers.items():
        known = names.get(name.lower())
        if name.lower() == _TYPE and not is_refused:
            raise ValueError("the Content-Type is that of the first way to pay")
        if known is not None and name.lower() in _LISTS:
            headers[known] = f"{headers[known]}, {value}"
        elif known is not None:
            raise ValueError(f"the header {name} is another way's")
        else:
            headers[name] = value
    body = {**made.body, **added.body} if is_refused else made.body
    return Challenge(body=body, headers=headers)


def checked_info(info: Any) -> Mapping[str, Any]:
    """Return members for OpenAPI; raises for another type, or values that are not JSON."""
    _check_body(info)
    if not all(isinstance(each, list | tuple) for each in info.values()):
        raise TypeError("payment_info is a mapping of names to lists")
    if not all(isinstance(one, Mapping) for each in info.values() for one in each):
        raise TypeError("payment_info has lists of objects")
    return info  # type: ignore[no-any-return]


def checked_guide(guide: Any) -> str:
    """Return a paragraph for /llms.txt; raises for anything but text that can be sent."""
    if not isinstance(guide, str):
        raise TypeError(f"guide is a {type(guide).__name__}, no text")
    guide.encode()
    return guide


def _check_body(body: Any) -> None:
    if not isinstance(body, Mapping) or not all(isinstance(name, str) for name in body):
        raise TypeError("a body is a mapping with text as keys")
    if len(msgspec.json.encode(body)) > _MAX_BODY_BYTES:
        raise ValueError(f"a body has more than {_MAX_BODY_BYTES} bytes")
