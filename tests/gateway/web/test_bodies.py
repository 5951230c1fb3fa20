"""Bad bodies on both selling routes: a 400 in the error's shape, and nothing charged."""

import base64
import json
import sys

import pytest

from tests.cases import each
from tests.conftest import nothing_charged

X402, DIRECT = "/api/x402/picture", "/api/proxy-generate"
HASH = "0x" + "ab" * 32
GOOD = {"slug": "picture", "prompt": "a boat", "txHash": HASH}  # good on both routes
FILE = {"fileBase64": base64.b64encode(b"hello").decode(), "fileName": "a.txt"}


async def refused(gateway, chain, url, data, *, status=400, headers=None):
    """Send a body that must be refused; return the response's body."""
    headers = {"Content-Type": "application/json"} | (headers or {})
    async with nothing_charged(gateway, chain):
        answer = await gateway.client.post(url, data=data, headers=headers)
    body = await answer.get_json()
    assert answer.status_code == status, body
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert set(body) <= {"error", "code", "details"}
    assert isinstance(body["error"], str)
    assert body["error"]
    assert body["code"] == "VALIDATION_ERROR"
    assert isinstance(body.get("details", ""), str)
    return body


async def refused_everywhere(gateway, chain, payer, data, **headers) -> list[dict]:
    """Send it by both flows, in x402 also with a valid payment; return the responses' bodies."""
    paid = {"X-PAYMENT": payer.header()}
    ways = ((X402, {}), (X402, paid), (DIRECT, {}))
    return [await refused(gateway, chain, url, data, headers=more | headers) for url, more in ways]


def changed(**changes) -> bytes:
    return json.dumps(GOOD | changes).encode()


OPEN = json.dumps(GOOD)[:-1].encode()
BODIES = {
    "no JSON": b"hello",
    "a form": b"prompt=a+boat",
    "cut off": OPEN,
    "two values": changed() + b"{}",
    "single quotes": b"{'prompt':'a'}",
    "a comment": b'{"prompt":"a"} // hi',
    "a comma too many": OPEN + b",}",
    "a control character": OPEN + b',"prompt":"a\nb"}',
    "5": b"5",
    "null": b"null",
    "true": b"true",
    "a list": b"[]",
    "a list of the body": b"[" + changed() + b"]",
    "a string": b'"x"',
    "spaces": b"   ",
    "lists": b"[" * 60_000,
    "objects": b'{"a":' * 10_000,
    "closed lists": b"[" * 30_000 + b"]" * 30_000,
    "a nested prompt": OPEN + b',"prompt":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "a nested unknown field": OPEN + b',"x":' + b"[" * 9_000 + b"]" * 9_000 + b"}",
    "nested unknown objects": OPEN + b',"x":' + b'{"a":' * 9_000 + b"1" + b"}" * 9_000 + b"}",
    "UTF-16": json.dumps(GOOD).encode("utf-16"),
    "no UTF-8": OPEN + b',"prompt":"\xff\xfe"}',
    "cut UTF-8": OPEN + b',"prompt":"\xf0\x9f"}',
    "UTF-8 of a surrogate": OPEN + b',"prompt":"\xed\xa0\x80"}',
    "no UTF-8 in an unknown field": OPEN + b',"x":"\xff"}',
    "a lone surrogate": OPEN + b',"prompt":"\\ud800"}',
    "NaN": OPEN + b',"prompt":NaN}',
    "NaN in an unknown field": OPEN + b',"x":NaN}',
    "Infinity": OPEN + b',"x":-Infinity}',
}


NO_STRINGS = (5, 0, True, 1.5, ["a"], {"a": 1})
OUT_OF_CHOICES = {
    "prompt": (None, "", "x" * 10_001),
    "aspect_ratio": ("2:1", "16:9 ", ""),
    "output_format": ("gif", "PNG", ""),
    "resolution": ("9K", "1k", ""),
}
NO_BASE64 = ("***", "aGk", "aGk=x", "a", "data:text/plain;base64,aGk=", "é")
WRONG_NAMES = ("", "x" * 256, "a", "a.exe", ".", "a.txt.exe", "txt")


@each("data", BODIES)
async def test_what_is_no_json_object_is_refused(gateway, chain, payer, data):
    await refused_everywhere(gateway, chain, payer, data)


@pytest.mark.parametrize("name", ["prompt", "aspect_ratio", "output_format", "resolution"])
async def test_a_string_must_be_a_json_string(gateway, chain, payer, name):
    for value in NO_STRINGS:
        data = changed(**{name: value})
        for body in await refused_everywhere(gateway, chain, payer, data):
            assert name in body["error"]


@pytest.mark.parametrize("name", ["slug", "txHash", "fileName", "fileBase64"])
async def test_a_string_of_the_direct_flow_must_be_a_json_string(gateway, chain, name):
    for value in (5, True, ["a"], {"a": 1}):
        await refused(gateway, chain, DIRECT, changed(**{"slug": "paper", **FILE, name: value}))


@pytest.mark.parametrize(("name", "values"), OUT_OF_CHOICES.items())
async def test_a_value_out_of_its_choices_is_refused(gateway, chain, payer, name, values):
    for value in values:
        data = changed(**{name: value})
        for body in await refused_everywhere(gateway, chain, payer, data):
            assert name in body["error"]


async def test_null_stands_for_a_field_left_out(gateway, payer):
    body = GOOD | dict.fromkeys(("aspect_ratio", "output_format", "resolution", "fileBase64"))
    answer = await gateway.client.post(X402, json=body, headers={"X-PAYMENT": payer.header()})
    assert answer.status_code == 200


async def test_unknown_fields_are_ignored(gateway, payer, provider):
    more = {"seed": 7, "model": ["x"], "": None, "Prompt": 5, "x" * 300: {"a": [1]}}
    answer = await gateway.client.post(
        X402, json=GOOD | more, headers={"X-PAYMENT": payer.header()}
    )
    assert answer.status_code == 200
    tx_hash = payer.transfer(20_000)
    answer = await gateway.client.post(DIRECT, json=GOOD | more | {"txHash": tx_hash})
    assert answer.status_code == 200


@each("prompt", ["x" * 10_000, "中" * 10_000, "😀" * 10_000, '"' * 10_000])
@each("ascii_only", [True, False])
async def test_10000_characters_of_any_script_are_taken(gateway, payer, prompt, ascii_only):
    data = json.dumps({"prompt": prompt}, ensure_ascii=ascii_only).encode()
    answer = await gateway.client.post(X402, data=data, headers={"X-PAYMENT": payer.header()})
    assert answer.status_code == 200, await answer.get_json()


# -- Content-Type

WRONG_TYPES = [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "text/json",
    "application/jsonp",
    "x",
]


@each("kind", WRONG_TYPES)
async def test_another_content_type_is_refused(gateway, chain, payer, kind):
    await refused_everywhere(gateway, chain, payer, changed(), **{"Content-Type": kind})


@pytest.mark.parametrize(
    "kind", [None, "application/json", "application/json; charset=utf-8", "Application/JSON"]
)
async def test_json_or_no_content_type_is_taken_as_json(gateway, payer, kind):
    headers = {"X-PAYMENT": payer.header()} | ({"Content-Type": kind} if kind else {})
    answer = await gateway.client.post(X402, data=changed(), headers=headers)
    assert answer.status_code == 200
    body = changed(txHash=payer.transfer(20_000))
    answer = await gateway.client.post(DIRECT, data=body, headers=headers)
    assert answer.status_code == 200


# -- size


@pytest.mark.parametrize(
    ("path", "size"),
    [(X402, 1_000_000), (DIRECT, 11_000_001), ("/api/x402/paper", 11_000_001)],
)
async def test_a_body_past_the_routes_limit_is_413(gateway, chain, path, size):
    data = changed(padding="x" * size)
    body = await refused(gateway, chain, path, data, status=413)
    assert "large" in body["error"]


@pytest.mark.parametrize(("path", "size"), [(X402, 1_000_000), (DIRECT, 12_000_000)])
async def test_a_body_that_hides_its_length_is_413_all_the_same(gateway, path, size):
    connection = gateway.client.request(
        path, method="POST", headers={"Content-Type": "application/json"}
    )
    async with connection as sending:
        for _ in range(size // 50_000):
            await sending.send(b" " * 50_000)
        await sending.send_complete()
    answer = await connection.as_response()
    assert answer.status_code == 413
    assert (await answer.get_json())["code"] == "VALIDATION_ERROR"


async def test_a_small_route_takes_no_large_body(gateway):
    answer = await gateway.client.post("/admin/login", data=b"x" * 1_000_000)
    assert answer.status_code == 413


# -- files


@pytest.mark.parametrize("path", ["/api/x402/paper", DIRECT])
async def test_a_file_that_is_no_base64_is_refused(gateway, chain, path):
    for text in NO_BASE64:
        data = changed(slug="paper", fileBase64=text, fileName="a.txt")
        await refused(gateway, chain, path, data)


@pytest.mark.parametrize("path", ["/api/x402/paper", DIRECT])
async def test_an_empty_file_is_refused(gateway, chain, path):
    """No buyer pays for a request that must fail."""
    await refused(gateway, chain, path, changed(slug="paper", fileBase64="", fileName="a.txt"))


@pytest.mark.parametrize("path", ["/api/x402/paper", DIRECT])
async def test_a_file_needs_a_name_with_a_known_ending(gateway, chain, path):
    for name in WRONG_NAMES:
        data = changed(slug="paper", **FILE | {"fileName": name})
        await refused(gateway, chain, path, data)


@pytest.mark.parametrize("url", [X402, DIRECT])
async def test_bad_bodies_do_not_raise_the_processs_limits(gateway, url):
    limit = sys.getrecursionlimit()
    for data in (BODIES["lists"], BODIES["objects"]):
        await gateway.client.post(url, data=data)
    assert sys.getrecursionlimit() == limit
