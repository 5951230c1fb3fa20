"""Makes odd requests by a seed: plain ones with one or two oddities of head, query or body."""

import json
import random
import uuid
from collections.abc import Callable, Iterator, Sequence

import attrs

from tests.gateway.web.asgi_calls import HUNG_UP, SILENT, WHOLE, Asked
from tests.gateway.web.test_bodies import BODIES, changed

HOST = (b"host", b"gateway.test")
_SLUGS = (b"picture", b"picture", b"picture", b"plain", b"plain", b"paused")
_ODD_SLUGS = (
    b"off", b"none", b"paper", b"PICTURE", b"picture/", b"pict%75re", b"picture%2F", b"picture%20",
    b"", b"/picture", b"../health", b"picture;a=b", b"bild-%C3%BC", b"%FF", b"x" * 300,
)  # fmt: skip
_ODD_IDS = (
    b"none", b"", b"a/b", b"a%2Fb", b"%00", b"x" * 64, b"x" * 65, b"x" * 5_000, b"%C3%BC", b"a.b",
    b"../health", b"~", b"null",
)  # fmt: skip
_ODD_PATHS = (b"/", b"/api", b"/api/health/", b"/api/Health", b"//api/health", b"/api/health%00")
_METHODS = ("HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "GET", "POST")
_QUERIES = (
    b"x402Version=1", b"x402Version=2", b"x402Version=3", b"x402Version=%31", b"x402version=1",
    b"x402Version=1&x402Version=2", b"x402Version", b"a=b", b"=", b"%", b"?", b"wait=1",
)  # fmt: skip
_WAITS = (
    b"wait=0", b"wait=1", b"wait=30", b"wait=31", b"wait=999", b"wait=1000", b"wait=-1", b"wait=",
    b"wait=1.5", b"wait=1e1", b"wait=nan", b"wait=inf", b"wait=abc", b"wait=007", b"wait=%31",
    b"wait=+1", b"wait=1&wait=2", b"wait=1&a=b", b"WAIT=1", b"wait=%FF", b"wait=0_1",
)  # fmt: skip
_HOSTS = (
    b"", b"gateway.test:8080", b"GATEWAY.TEST", b"[::1]:80", b"127.0.0.1", b"a" * 64 + b".test",
    b"a..test", b"gateway.test.", b"under_score", b"a b", b"gateway.test:99999999", b"b\xfccher",
    b"xn--bcher-kva.test", b"a,b", b"-a.test", b".".join([b"a"] * 12), b"user@gateway.test", b"/",
)  # fmt: skip
_TYPES = (
    b"application/json; charset=utf-8", b"application/json;charset=latin-1", b"APPLICATION/JSON",
    b"text/plain", b"application/x-www-form-urlencoded", b"", b"application/jsonx", b"json",
    b"multipart/form-data; boundary=x", b"application/json, text/plain", b" application/json",
)  # fmt: skip
_LENGTHS = (
    b"0", b"1", b"00033", b"65536", b"65537", b"184000", b"200000", b"11000001", b"99999999999",
    b"-1", b"+5", b"abc", b"", b"1 ", b"1.0", b"1_0",
)  # fmt: skip
_MORE_HEADERS = (
    (b"x-request-id", b"plain-one_1.0"), (b"x-request-id", b"no id"), (b"x-request-id", b""),
    (b"x-request-id", b"y" * 65), (b"x-request-id", b"\xfc"), (b"idempotency-key", b"k"),
    (b"idempotency-key", b""), (b"idempotency-key", b"k" * 255), (b"idempotency-key", b"k" * 256),
    (b"idempotency-key", b"\xe9" * 255), (b"x-payment", b""), (b"x-payment", b"e30="),
    (b"payment-signature", b"e30="), (b"x-payment", b"\xff"), (b"transfer-encoding", b"chunked"),
    (b"content-encoding", b"gzip"), (b"expect", b"100-continue"), (b"expect", b"nonsense"),
    (b"cookie", b"gateway_admin=x; a=b"), (b"cookie", b"\xff="), (b"range", b"bytes=0-1"),
    (b"if-none-match", b"*"), (b"accept", b"text/html"), (b"accept", b"text/event-stream"),
    (b"accept", b"application/json, Text/Event-Stream;q=0.9"), (b"accept-encoding", b"gzip"),
    (b"accept", b"text/*"), (b"accept", b"application/json;q=0.1,*/*"), (b"accept", b"text/*;q=0"),
    (b"x-http-method-override", b"DELETE"), (b"upgrade", b"websocket"), (b"connection", b"close"),
    (b"x-forwarded-for", b"192.0.2.7"), (b"x-forwarded-for", b"192.0.2.7, 192.0.2.8"),
    (b"x-forwarded-for", b""), (b"x-forwarded-for", b"\xff"), (b"x-forwarded-host", b"evil.test"),
    (b"remote-addr", b"192.0.2.9"), (b"x-original-url", b"/admin"), (b"origin", b"https://a.test"),
    (b"access-control-request-method", b"POST"), (b"authorization", b"Basic eDp5"),
)  # fmt: skip
_ODD_BODIES = (
    *BODIES.values(),
    b"",
    b"{}",
    b'{"prompt":null}',
    b'{"prompt":""}',
    changed(prompt=5),
    changed(prompt="x" * 10_000),
    changed(prompt="x" * 10_001),
    json.dumps({"prompt": "\U0001f600" * 9_000}).encode(),
    changed(prompt="a boat", padding="x" * 70_000),
    changed(padding="x" * 184_000),
    changed(aspect_ratio="16:9", resolution="2K", output_format="webp"),
    changed(aspect_ratio="4:3"),
    changed(aspect_ratio="no"),
    changed(resolution="8K"),
    changed(callbackUrl="https://buyer.example/hook"),
    changed(callbackUrl=5),
    changed(fileBase64="aGVsbG8=", fileName="a.txt"),
    changed(fileBase64="!"),
)


def odd_requests(
    seed: object, count: int, task_id: str, plain: Sequence[Asked] = ()
) -> Iterator[Asked]:
    """Yield requests for a gateway's price, a task, and its health.

    With `plain`, the odd requests are made from those instead.
    """
    chance = random.Random(str(seed))
    for _ in range(count):
        if plain:
            asked = chance.choice(plain)
            asked = attrs.evolve(asked, pieces=_cut(chance, b"".join(asked.pieces)))
        else:
            asked = chance.choices((_price, _poll, _health), (6, 3, 1))[0](chance, task_id)
        for _ in range(chance.choices((0, 1, 2), (3, 5, 2))[0]):
            asked = chance.choice(_ODDITIES)(chance, asked)
        if asked.end == HUNG_UP and asked.method != "POST":
            # No body is awaited, so the response may come before or after the disconnect.
            asked = attrs.evolve(asked, end=WHOLE)
        yield asked


def _price(chance: random.Random, _: str) -> Asked:
    slug = chance.choice(_SLUGS if chance.random() < 0.8 else _ODD_SLUGS)
    body = b'{"prompt":"a boat on a lake"}'
    if chance.random() < 0.5:
        body = chance.choice(_ODD_BODIES)
    headers = [HOST, (b"content-type", b"application/json")]
    if body or chance.random() < 0.5:
        headers.append((b"content-length", b"%d" % len(body)))
    return Asked(
        method="POST", path=b"/api/x402/" + slug, headers=headers, pieces=_cut(chance, body)
    )


def _poll(chance: random.Random, task_id: str) -> Asked:
    known = task_id.encode()
    ids = (known, known, known.upper(), str(uuid.UUID(int=7)).encode())
    return Asked(
        path=b"/api/task/" + chance.choice(ids if chance.random() < 0.7 else _ODD_IDS),
        query=chance.choice(_WAITS) if chance.random() < 0.5 else b"",
        headers=[HOST],
    )


def _health(chance: random.Random, _: str) -> Asked:
    odd = chance.random() < 0.4
    return Asked(path=chance.choice(_ODD_PATHS) if odd else b"/api/health", headers=[HOST])


def _cut(chance: random.Random, body: bytes) -> list[bytes]:
    """Return a body in a few pieces, as it may arrive."""
    cuts = sorted(chance.randrange(len(body) + 1) for _ in range(chance.randrange(4)))
    return [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def _change(name: bytes, values: tuple[bytes, ...]) -> Callable[[random.Random, Asked], Asked]:
    """Return an oddity: another value of a header, none, or two of them."""

    def change(chance: random.Random, asked: Asked) -> Asked:
        given = [each for each in asked.headers if each[0] == name]
        others = [each for each in asked.headers if each[0] != name]
        way = chance.random()
        if way < 0.15:
            return attrs.evolve(asked, headers=others)
        if way < 0.3:
            return attrs.evolve(asked, headers=[*others, *given, (name, chance.choice(values))])
        return attrs.evolve(asked, headers=[*others, (name, chance.choice(values))])

    return change


def _add_header(chance: random.Random, asked: Asked) -> Asked:
    added = chance.sample(_MORE_HEADERS, chance.randrange(1, 3))
    return attrs.evolve(asked, headers=[*asked.headers, *added])


def _change_method(chance: random.Random, asked: Asked) -> Asked:
    return attrs.evolve(asked, method=chance.choice(_METHODS))


def _change_query(chance: random.Random, asked: Asked) -> Asked:
    return attrs.evolve(asked, query=chance.choice(_QUERIES))


def _break_off(chance: random.Random, asked: Asked) -> Asked:
    """Let the client disconnect or stop in the middle of its body."""
    kept = chance.randrange(len(asked.pieces) + 1)
    return attrs.evolve(asked, pieces=asked.pieces[:kept], end=chance.choice((HUNG_UP, SILENT)))


def _give_body(chance: random.Random, asked: Asked) -> Asked:
    """Send an unexpected body, with or without its length."""
    about = [(b"content-length", b"2")] if chance.random() < 0.5 else []
    return attrs.evolve(asked, pieces=[b"{}"], headers=[*asked.headers, *about], end=WHOLE)


def _mount(_: random.Random, asked: Asked) -> Asked:
    return attrs.evolve(asked, root_path="/mounted")


_ODDITIES = (
    _change(b"host", _HOSTS),
    _change(b"content-type", _TYPES),
    _change(b"content-length", _LENGTHS),
    _add_header,
    _add_header,
    _add_header,
    _change_method,
    _change_query,
    _break_off,
    _give_body,
    _mount,
)
