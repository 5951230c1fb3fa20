"""Decoded payment headers are kept for the second read of a sale, and only a few of them."""

import pytest

from gateway import PaymentRequired
from gateway_x402 import messages

ADDRESS = "0x" + "11" * 20


def header(nonce: int, version: int = 1) -> str:
    signed = {
        "from": ADDRESS,
        "to": ADDRESS,
        "value": "20000",
        "validAfter": "0",
        "validBefore": "1",
        "nonce": f"0x{nonce:064x}",
    }
    payload = {"signature": "0x" + "00" * 65, "authorization": signed}
    envelope = {"x402Version": version, "scheme": "exact", "network": "base", "payload": payload}
    return messages.encode(envelope)


def test_each_header_is_read_as_its_own_payment():
    nonces = [messages.decode(header(number)).authorization.nonce for number in (1, 2, 1)]
    assert nonces == [f"0x{number:064x}" for number in (1, 2, 1)]


def test_few_headers_are_kept():
    for number in range(100):
        messages.decode(header(number))
    assert messages.decode.cache_info().currsize == 32


def test_a_wrong_header_is_refused_each_time():
    for _ in range(2):
        with pytest.raises(PaymentRequired, match="version"):
            messages.decode(header(1, version=7))
