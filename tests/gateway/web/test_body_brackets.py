"""Nesting of a body is counted in one pass: the same verdicts as before, little memory."""

import json
import random
import re
import tracemalloc

import pytest

from gateway.errors import ValidationError
from gateway.web import bodies
from tests.gateway.web.test_bodies import DIRECT, OPEN, X402, refused

_PIECE = 64 * 1024  # how much of a body is scanned at once


def is_taken(data: bytes) -> bool:
    try:
        bodies.read(bodies.GenerationBody, data)
    except ValidationError:
        return False
    return True


def is_taken_by_the_first_scan(data: bytes) -> bool:
    """Judge like the earlier gateway, which removed strings by a (quadratic) pattern."""
    depth = 0
    for bracket in re.findall(rb"[\[\]{}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", data)):
        depth += 1 if bracket in b"[{" else -1
        if depth > 100:
            return False
    try:
        return isinstance(json.loads(data, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def nearly_a_body(dice: random.Random) -> bytes:
    """Return JSON of a depth around the limit, its strings full of brackets; sometimes broken."""
    text = "".join(dice.choices('"\\[]{}:, é\n', k=dice.randrange(40)))
    value = text
    for _ in range(dice.choice([0, 3, 95, 98, 99, 100, 101, 130])):
        value = [value, text] if dice.random() < 0.8 else {text: value}
    pad = "x" * (_PIECE - dice.randrange(300) if dice.random() < 0.1 else 0)
    body = {"pad": pad, text: value, "more": [text] * dice.randrange(20)}
    data = bytearray(json.dumps(body, ensure_ascii=False).encode())
    for _ in range(dice.choice([0, 0, 1, 2])):
        data[dice.randrange(len(data))] = dice.choice(b'"\\[]{}')
    return bytes(data)


@pytest.mark.full
def test_4000_random_bodies_meet_the_verdict_that_they_always_met():
    dice = random.Random(9)
    taken = 0
    for number in range(4_000):
        data = nearly_a_body(dice)
        assert is_taken(data) == is_taken_by_the_first_scan(data), (number, data[-3_000:])
        taken += is_taken(data)
    assert 1_000 < taken < 3_500


def test_a_mark_on_the_edge_of_a_scanned_piece_is_seen():
    """Escapes and quotes before, on and after the edge of a piece."""
    for end in (rb"\"", rb"\\", rb"\\\"", b'","', rb'\\","'):
        for shift in range(-8, 9):
            start = b'{"x":"'
            pad = b"a" * (_PIECE - len(start) + shift)
            inside = start + pad + end + b"[" * 200 + b'"}'
            assert is_taken(inside) == is_taken_by_the_first_scan(inside), (end, shift)
            outside = start + pad + end + b'":' + b"[" * 200 + b"]" * 200 + b"}"
            assert is_taken(outside) == is_taken_by_the_first_scan(outside), (end, shift)


@pytest.mark.parametrize("url", [X402, DIRECT, "/admin/login"])
async def test_more_brackets_than_a_request_needs_are_refused(gateway, url):
    few, many = (OPEN + b',"x":[' + b"[]," * number + b"[]]}" for number in (4_990, 5_001))
    assert "brackets" not in (await (await gateway.client.post(url, data=few)).get_json())["error"]
    answer = await gateway.client.post(url, data=many)
    assert answer.status_code == 400
    assert "brackets" in (await answer.get_json())["error"]


async def test_a_prompt_may_be_all_brackets(gateway, payer):
    data = json.dumps({"prompt": "[" * 10_000}).encode()
    answer = await gateway.client.post(X402, data=data, headers={"X-PAYMENT": payer.header()})
    assert answer.status_code == 200, await answer.get_json()


@pytest.mark.parametrize(
    "data",
    [
        b'{"x":"' + b"[" * 200 + b'","y":[' + b'"",' * 300_000 + b'""]}',
        b'{"prompt":[' + b'"ab",' * 200_000 + b'""]}',
        b'{"prompt":[' + b"1.5," * 250_000 + b"1]}",
        '{"x":"é🦊'.encode() + b"a" * 1_000_000 + b'"}',
    ],
    ids=["strings", "a list as prompt", "numbers as prompt", "one wide string"],
)
def test_reading_a_large_body_keeps_nothing_of_what_is_skipped(data):
    is_taken(data)
    tracemalloc.start()
    try:
        is_taken(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < len(data) * 2 + 4_000_000


async def test_a_list_in_place_of_a_string_is_told_by_name(gateway, chain):
    for name in ("slug", "txHash", "fileName", "fileBase64", "payerSignature"):
        body = await refused(gateway, chain, DIRECT, OPEN + b',"%s":[1]}' % name.encode())
        assert body["error"] == f"{name} must be a string."
