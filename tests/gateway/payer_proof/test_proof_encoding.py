"""The accepted forms of a `payerSignature`, and the exact data that it signs."""

import base64
import hashlib

import pytest

from gateway.web import bodies, wire
from tests.cases import each
from tests.conftest import nothing_charged
from tests.gateway.payer_proof.purchases import (
    UNPROVEN,
    accepted,
    refusal,
    request,
    signed,
    submit,
    written,
)

HALF_N = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


@each(
    "value",
    [
        "",
        "0x",
        "0x1",
        "0xzz",
        "ab" * 65,
        "0X" + "ab" * 65,
        " 0x" + "ab" * 65,
        "0x" + "ab" * 65 + "\n",
        "0x" + "ab" * 4097,
        "0x" + "٣" * 130,
        5,
        True,
        [],
        {},
        ["0x" + "ab" * 65],
    ],
)
async def test_what_is_no_hex_string_is_a_bad_body(gateway, payer, chain, value):
    body = request(payer.transfer(20_000), payerSignature=value)
    async with nothing_charged(gateway, chain):
        answer = await submit(gateway, body)
    assert await refusal(answer) == (400, "VALIDATION_ERROR")
    assert "payerSignature" in (await answer.get_json())["error"]


def high_s(signature: bytes) -> bytes:
    s = ORDER - int.from_bytes(signature[32:64], "big")
    assert s > HALF_N
    return signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])


@each(
    "spoil",
    [
        lambda _: b"\0",
        lambda _: b"\0" * 65,
        lambda _: b"\xff" * 65,
        lambda _: b"\xff" * 4096,
        lambda good: good[:64],
        lambda good: good + b"\0",
        lambda good: good[:64] + bytes([good[64] - 27]),
        lambda good: b"\0" * 32 + good[32:],
        lambda good: good[:32] + b"\0" * 32 + good[64:],
        high_s,
    ],
)
async def test_no_malformed_signature_passes_or_breaks_anything(gateway, payer, chain, spoil):
    body = signed(payer.account, request(payer.transfer(20_000)))
    good = bytes.fromhex(body["payerSignature"][2:])
    async with nothing_charged(gateway, chain):
        spoiled = body | {"payerSignature": "0x" + spoil(good).hex()}
        assert await refusal(await submit(gateway, spoiled)) == UNPROVEN
    await accepted(gateway, body | {"payerSignature": "0x" + good.hex().upper()})


# -- the hashed data

# From node's JSON.stringify(request, Object.keys(request).sort()) and its SHA-256.
VECTORS = {
    "ef1a101db84d09e18e10443431e0388ab972087eba6ab20e2ed825b7ebcc44ed": {"prompt": "a boat"},
    "1dec8ce2dd6839b107c6ce7992aa96b0d0202f8058dd10287fa537a2f69871db": {
        "prompt": 'é😀\u2028\u2029\x7f/<>&\0\b\t\n\x1f"\\',
        "aspect_ratio": "1:1",
        "output_format": "png",
        "resolution": "1K",
    },
    "5a9403fc8f5fa71c0f2c395e2a140ad981006e6a01e0eac88e4f0bc892bfca3e": {
        "fileName": "ü.txt",
        "fileBase64": "aGVsbG8=",
    },
}


@pytest.mark.parametrize(("expected", "fields"), VECTORS.items())
async def test_the_request_is_hashed_as_javascript_writes_it(gateway, expected, fields):
    body = {"slug": "x", "txHash": "0x" + "ab" * 32, "payerSignature": "0x00"} | fields
    sent = wire.dumps(body | {"resolution": fields.get("resolution"), "unknown": "field"})
    sent = sent if isinstance(sent, bytes) else sent.encode()
    assert bodies.request_hash(bodies.read(bodies.DirectBody, sent)).hex() == expected
    assert hashlib.sha256(written(body).encode()).hexdigest() == expected


async def test_every_field_that_was_sent_is_signed(gateway, payer):
    fields = {"prompt": "é \u2028 😀", "aspect_ratio": "16:9", "output_format": "webp"}
    body = request(payer.transfer(20_000), **fields, resolution="2K")
    await accepted(gateway, signed(payer.account, body))


async def test_half_a_character_is_a_bad_body(gateway, payer):
    body = b'{"slug":"picture","txHash":"%s","payerSignature":"0x00","prompt":"a\\ud800"}'
    data = body % payer.transfer(20_000).encode()
    headers = {"Content-Type": "application/json"}
    answer = await gateway.client.post("/api/proxy-generate", data=data, headers=headers)
    assert await refusal(answer) == (400, "VALIDATION_ERROR")


async def test_a_file_is_signed_with_its_name(gateway, payer):
    body = request(payer.transfer(10_000), slug="paper", fileName="ü.txt", fileBase64="aGVsbG8=")
    del body["prompt"]
    proven = signed(payer.account, body)
    for changes in ({"fileName": "b.txt"}, {"fileBase64": "aGVsbG8h"}):
        assert await refusal(await submit(gateway, proven | changes)) == UNPROVEN
    await accepted(gateway, proven)


async def test_of_a_file_the_usual_base64_is_signed(gateway, payer):
    """Two encodings of the same bytes are the same file: bits after the last byte do not count."""
    body = request(payer.transfer(10_000), slug="paper", fileName="a.txt", fileBase64="aGVsbG8=")
    await accepted(gateway, signed(payer.account, body) | {"fileBase64": "aGVsbG9="})


async def test_a_large_file_is_signed(gateway, payer):
    file = base64.b64encode(bytes(range(256)) * 20_000).decode()
    body = request(payer.transfer(10_000), slug="paper", fileName="a.pdf", fileBase64=file)
    proven = signed(payer.account, body)
    assert await refusal(await submit(gateway, proven | {"prompt": "other"})) == UNPROVEN
    await accepted(gateway, proven)
