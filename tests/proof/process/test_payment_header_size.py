"""A payment header of 32 KiB reaches the gateway on each server; a longer one does no harm."""

import base64
import json

from tests.proof.process.connections import ASK, PRICE, connected, is_well, received

MAX_BYTES = 32 * 1024


def payment_of(size: int) -> bytes:
    """Return a header of `size` bytes after decoding; its version shows that it was decoded."""
    text = json.dumps({"x402Version": 7, "padding": ""})
    text = text.replace('""', f'"{"x" * (size - len(text))}"')
    assert len(text) == size
    return base64.b64encode(text.encode())


def refusal(gateway, payment: bytes) -> tuple[bytes, str]:
    """Return the status of a purchase, and the reason for refusing the payment."""
    head = ASK + b"Connection: close\r\nContent-Length: %d\r\n" % len(PRICE)
    with connected(gateway) as connection:
        connection.sendall(head + b"PAYMENT-SIGNATURE: " + payment + b"\r\n\r\n" + PRICE)
        answer, _, body = received(connection).partition(b"\r\n\r\n")
    return answer.split()[1], json.loads(body)["error"] if body else ""


def test_a_payment_header_of_32_kib_is_read_and_a_longer_one_is_refused(gateway):
    assert refusal(gateway, payment_of(MAX_BYTES)) == (b"402", "invalid_x402_version")
    assert refusal(gateway, payment_of(MAX_BYTES + 256)) == (b"402", "invalid_payload")
    assert is_well(gateway)


def test_a_head_that_no_payment_needs_is_not_kept(gateway):
    with connected(gateway) as connection:
        connection.sendall(ASK + b"PAYMENT-SIGNATURE: " + b"A" * 100_000)
        assert received(connection).split()[1] == b"431"
    assert is_well(gateway)
