"""A vendor's HTTP answer, and the error that its status stands for."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import attrs

from gateway.errors import (
    AccountProblem,
    InvalidInput,
    ProviderError,
    RateLimited,
    SubmitUncertain,
    Transient,
)

REDIRECTS = range(300, 400)
# Characters of Base64 that are decoded at once; a multiple of four. Between two pieces the event
# loop's thread gets its turn.
_PIECE = 1 << 20
# The wait for a 429 whose Retry-After is missing or unreadable.
_RETRY_AFTER_S = 10.0
_ACCOUNT = (401, 402, 403, 405)
_FORBIDDEN = 403
# The model does not exist (any more), or the address in the settings is wrong.
_NOT_FOUND = 404
_INPUT = (400, 413, 415, 422)
_TOO_MANY = 429
# 99,999,999 seconds are three years.
_MAX_RETRY_AFTER_DIGITS = 8


@attrs.frozen(kw_only=True)
class Answer:
    """A vendor's answer to one request, with any status."""

    status: int
    headers: Mapping[str, str] = attrs.field(repr=False)
    """Values by name; names are in lower case."""
    body: bytes = attrs.field(repr=lambda body: f"<{len(body)} bytes>")
    may_be_billed: bool = False
    """Whether the request may have made the vendor produce something that costs money."""

    def json(self) -> Any:
        """Return the body as JSON; raises `Transient` if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise Transient("The provider's answer is not JSON.") from None

    async def submit_json(self) -> Any:
        """Return the JSON of a submit's answer; None for an error status without JSON.

        A thread reads it, because an answer with a large picture has 45 MB. Raises
        `SubmitUncertain` for a 2xx that is not JSON: the vendor made something that cannot be
        reached.
        """
        try:
            return await asyncio.to_thread(self.json)
        except Transient:
            if self.status in range(200, 300):
                raise SubmitUncertain("Answered with success, but not with JSON.") from None
            return None

    @staticmethod
    async def decoded(encoded: str) -> bytes:
        """Return the bytes of a file that the JSON holds as Base64.

        Raises `SubmitUncertain` for a text that is not Base64: the vendor made something that
        cannot be reached.
        """
        try:
            return await asyncio.to_thread(_decode_base64, encoded)
        except ValueError:
            raise SubmitUncertain("The provider's file is not Base64.") from None

    def check(self) -> None:
        """Raise the error that the status stands for; do nothing for a 2xx.

        A 5xx, or any status without a meaning of its own here, leaves open whether the vendor
        acted: it raises `SubmitUncertain` if the request may be billed and `Transient` otherwise.
        An adapter that knows more about its vendor's errors reads the body first.
        """
        error = _status_error(self)
        if error is not None:
            raise error

    def check_poll(self) -> None:
        """Raise the error that the status of a poll stands for; do nothing for a 2xx.

        A poll holds nothing of the buyer's. So a 400 says nothing about the job: it counts as
        `Transient`, and the job is polled again.
        """
        if self.status in _INPUT:
            raise Transient(f"The provider answers with status {self.status}.")
        self.check()


def _decode_base64(encoded: str) -> bytes:
    """Decode in pieces: decoding 45 MB at once would block every other thread for 0.1 s.

    Some servers write a `data:` address, break lines, or leave the padding out.
    """
    if encoded.startswith("data:"):
        _, comma, encoded = encoded.partition(",")
        if not comma:
            raise ValueError("an address without data")
    data, rest, decoded = bytearray(), "", 0
    for start in range(0, len(encoded), _PIECE):
        rest += "".join(encoded[start : start + _PIECE].split())
        whole = len(rest) - len(rest) % 4
        _decode_onto(data, rest[:whole], decoded)
        decoded, rest = decoded + whole, rest[whole:]
    if rest:
        _decode_onto(data, rest + "=" * (-len(rest) % 4), decoded)
    return bytes(data)


def _decode_onto(data: bytearray, encoded: str, decoded: int) -> None:
    """Append what Base64 says to the data of so many characters before it."""
    if encoded and len(data) * 4 != decoded * 3:
        raise ValueError("padding in the middle")
    data += base64.b64decode(encoded, validate=True)


def _status_error(answer: Answer) -> ProviderError | None:
    status = answer.status
    if status in range(200, 300):
        return None
    said = f"The provider answers with status {status}."
    if status == _NOT_FOUND:
        return AccountProblem(said, scope="model")
    if (status in _ACCOUNT and not _is_a_wall(answer)) or status in REDIRECTS:
        return AccountProblem(said)
    if status in _INPUT:
        return InvalidInput("The provider cannot work with this input.")
    if status == _TOO_MANY:
        wait_s = _retry_after_s(answer.headers.get("retry-after", ""))
        return RateLimited("The provider asks to wait.", retry_after_s=wait_s)
    return SubmitUncertain(said) if answer.may_be_billed else Transient(said)


def _is_a_wall(answer: Answer) -> bool:
    """Whether a 403 is that of a firewall before the vendor's API, which says nothing of the key.

    The APIs themselves answer with JSON, or with nothing.
    """
    if answer.status != _FORBIDDEN or not answer.body.strip():
        return False
    try:
        json.loads(answer.body)
    except (ValueError, RecursionError):
        return True
    return False


def _retry_after_s(text: str) -> float:
    """Return the seconds of a Retry-After header; a date, which is rare, counts as missing."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_RETRY_AFTER_DIGITS
    return float(text) if is_number else _RETRY_AFTER_S
