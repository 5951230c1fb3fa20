"""Grows inputs and measures CPU time: no parser of ours may be worse than linear.

It compares the CPU seconds of this process at two sizes, so that a busy machine changes little. A
super-linear result is measured again before it counts.
"""

import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
from werkzeug import http
from werkzeug.sansio.http import parse_cookie

from gateway.domain import Attachment
from gateway.errors import GatewayError
from gateway.web import bodies
from gateway.web.front.current import client_address
from gateway_documents import kinds as documents
from gateway_documents.errors import Unreadable
from gateway_x402 import messages
from tests.proof.fuzz import fuzzed_gateway
from tests.proof.fuzz.asks import Ask
from tests.proof.fuzz.parsers import MPP

_STEP = 8
_STEPS = 2
# The allowed growth in time for eight times the bytes. Linear is 8, quadratic is 64.
_WORST_RATIO = 26.0
# Shorter times are noise, and harmless at the allowed sizes.
_MIN_S = 0.001
_RUNS = 3
_REFUSALS = (GatewayError, Unreadable)


@attrs.frozen(kw_only=True)
class Grown:
    """One parser and the shapes that are grown for it: prefix, repeated part, suffix."""

    name: str
    run: Callable[[Any], object]
    before: tuple[Any, ...]
    units: tuple[Any, ...]
    after: tuple[Any, ...]
    largest: int


@attrs.frozen
class Finding:
    """A shape whose time grows faster than its size."""

    name: str
    shape: tuple[Any, Any, Any]
    size: int
    ratio: float

    def __str__(self) -> str:
        before, unit, after = self.shape
        return (
            f"{self.name}: {before[:40]!r} + {unit!r} * n + {after!r} of {self.size:,} takes "
            f"{self.ratio:.0f} times as long as one of {self.size // _STEP:,}"
        )


def shapes(grown: Grown) -> Iterator[tuple[Any, Any, Any]]:
    """Yield every shape of a parser's input."""
    return itertools.product(grown.before, grown.units, grown.after)


def super_linear(grown: Grown, shape: tuple[Any, Any, Any]) -> Finding | None:
    """Grow one shape step by step; return the first super-linear step."""
    size = grown.largest // _STEP**_STEPS
    smaller = _made(shape, size)
    for _ in range(_STEPS):
        size *= _STEP
        larger = _made(shape, size)
        if _ratio(grown.run, smaller, larger, runs=1) > _WORST_RATIO:
            # Noise lengthens one run, not the shortest of several.
            ratio = _ratio(grown.run, smaller, larger, runs=_RUNS)
            if ratio > _WORST_RATIO:
                return Finding(grown.name, shape, size, ratio)
        smaller = larger
    return None


def _made(shape: tuple[Any, Any, Any], size: int) -> Any:
    before, unit, after = shape
    return before + unit * (size // len(unit)) + after


def _ratio(run: Callable[[Any], object], smaller: Any, larger: Any, *, runs: int) -> float:
    least_s = min(_cpu_s(run, larger) for _ in range(runs))
    if least_s <= _MIN_S:
        return 1.0
    return least_s / max(min(_cpu_s(run, smaller) for _ in range(runs)), _MIN_S)


def _cpu_s(run: Callable[[Any], object], value: Any) -> float:
    began = time.process_time()
    with contextlib.suppress(*_REFUSALS):
        run(value)
    return time.process_time() - began


_DEEP = b"[" * 101  # so many brackets make the reader count them
_JSON_BEFORE = (
    b"",
    b'{"x":' + _DEEP,
    b'{"x":"' + _DEEP,
    b'{"prompt":"',
    b'{"fileName":"a","fileBase64":"',
    b'{"slug":"a","payerSignature":"0x',
    b'{"slug":"a","txHash":"0x',
)
_JSON_UNITS = tuple(
    text.encode()
    for text in (
        '"', "\\", '"\\', '\\"', "[", "]", '{"a":', "[]", '"",', '"a":1,', "1,", "1", ",", " ",
        "\n", "-", "1e", ".", "A", "=", "é", "🦊", "\\u00e9", "\\ud800", "/*", "null",
    )
)  # fmt: skip
_TEXT_BEFORE = ("", "bytes=", 'a; b="', "e30")
_TEXT_UNITS = (
    '"', "\\", '"\\', '\\"', ",", ";", "=", "a=b;", 'a="b";', "0-1,", "1-", "-", "+", "/", "_", ".",
    ":", "1", "a", " ", "\t", " ,", "; ", "%", "%41", "[", "é", 'W/"a",', "&", "a=1&",
)  # fmt: skip
_FILE_BEFORE = (b"", b"%PDF-", b"PK\x03\x04", b"PK\x05\x06", b"<meta ", b"\xff\xfe")
_FILE_UNITS = (
    b"\0", b" ", b"a", b"\xff", b"PK\x03\x04", b"PK\x05\x06", b"PK\x01\x02" + b"\0" * 42,
    b"<meta charset", b"<!-- ", b"\xe9", b"\r\n", b"%%EOF",
)  # fmt: skip


def parsers(*, body_bytes: int, header_bytes: int = 16_000) -> list[Grown]:
    """Return every parser of untrusted bytes, up to these sizes."""
    every: list[Grown] = []

    def add(name: str, run: Callable[[Any], object], kind: tuple[Any, ...], largest: int) -> None:
        before, units, after = kind
        every.append(
            Grown(name=name, run=run, before=before, units=units, after=after, largest=largest)
        )

    body = (_JSON_BEFORE, _JSON_UNITS, (b"", b'"}'))
    text = (_TEXT_BEFORE, _TEXT_UNITS, ("", "!"))
    file = (_FILE_BEFORE, _FILE_UNITS, (b"", b"\0"))
    add("body of x402", lambda data: bodies.read(bodies.GenerationBody, data), body, body_bytes)
    direct = functools.partial(bodies.read, bodies.DirectBody)
    add("body of proxy-generate", direct, body, body_bytes)
    add("body of a login", bodies.read_login, body, body_bytes)
    add("payment header", messages.decode, text, header_bytes)
    add("MPP credential", MPP.read, text, header_bytes)
    add("trusted address", lambda header: client_address("peer", header), text, header_bytes)
    add(
        "name of a file", lambda name: Attachment(name=name, data=b"").extension, text, header_bytes
    )
    for name, run in _WERKZEUG.items():
        add(name, run, text, header_bytes)
    for ending in (".pdf", ".docx", ".html", ".txt", ".png"):
        add(f"{ending} file", _recognising(ending), file, body_bytes)
    return every


_WERKZEUG = {
    "Range": http.parse_range_header,
    "If-None-Match": http.parse_etags,
    "If-Modified-Since": http.parse_date,
    "Content-Type": http.parse_options_header,
    "Cookie": parse_cookie,
}


def _recognising(ending: str) -> Callable[[bytes], object]:
    return lambda data: documents.recognise(ending, data)


def routes(site: fuzzed_gateway.Site, *, header_bytes: int = 16_000) -> list[Grown]:
    """Return the inputs that an HTTP server passes on whole:

    each header, the path and the query.
    """
    every = [("path", lambda text: _asked(site, "/api/task/", text))]
    every.append(("query", lambda text: _asked(site, "/api/task/a?", text)))
    every += [(name, _with_header(site, name)) for name in _HEADERS]
    return [
        Grown(
            name=f"{name}, whole route",
            run=run,
            before=("",),
            units=_TEXT_UNITS,
            after=("",),
            largest=header_bytes,
        )
        for name, run in every
    ]


_HEADERS = ("X-PAYMENT", "Idempotency-Key", "Content-Type", "Cookie", "Host", "X-Request-Id")


def _asked(site: fuzzed_gateway.Site, path: str, text: str) -> str:
    safe = "".join(sign for sign in text if "!" <= sign <= "~")
    return site.ask(Ask(method="GET", path=path + safe))


def _with_header(site: fuzzed_gateway.Site, name: str) -> Callable[[str], str]:
    def ask(text: str) -> str:
        headers = (("Content-Type", "application/json"), (name, text.strip()))
        if name == "Content-Type":
            headers = headers[1:]
        body = b'{"prompt":"a boat"}'
        return site.ask(Ask(method="POST", path="/api/x402/picture", headers=headers, body=body))

    return ask
