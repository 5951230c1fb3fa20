"""A vendor's HTTP response, and the error that its status means."""

import asyncio
import base64
import email.utils
import json
import re
import time
from collections.abc import Collection, Mapping
from typing import Any

import attrs

from gateway.errors import (
    AccountProblem,
    InvalidInput,
    NotAccepted,
    ProviderError,
    RateLimited,
    SubmitUncertain,
    Transient,
)
from gateway.outputs.downloads import REDIRECTS

# Base64 characters per step; a multiple of four. Other threads can run between two steps.
_PIECE = 1 << 20
# The wait after a 429 without a readable Retry-After.
_RETRY_AFTER_S = 10.0
_ACCOUNT = (401, 402, 403, 405)
_FORBIDDEN = 403
# The model does not exist (any more), or the base URL is wrong.
_NOT_FOUND = 404
_INPUT = (400, 413, 415, 422)
_TOO_MANY = 429
# 99,999,999 seconds are three years. OpenAI's and Azure's clients also read decimals.
_DELAY = re.compile(r"[0-9]{1,8}(\.[0-9]{1,6})?")
_DELAYS_MS = ("retry-after-ms", "x-ms-retry-after-ms")


@attrs.frozen(kw_only=True)
class Answer:
    """A vendor's response to one request, with any status."""

    status: int
    headers: Mapping[str, str] = attrs.field(repr=False)
    """Values by lower-case name."""
    body: bytes = attrs.field(repr=lambda body: f"<{len(body)} bytes>")
    may_be_billed: bool = False
    """Whether the vendor may charge for this request."""

    @property
    def retry_after_s(self) -> float | None:
        """The wait in seconds that the headers ask for, or None."""
        for name in _DELAYS_MS:
            if _DELAY.fullmatch(text := self.headers.get(name, "")):
                return float(text) / 1_000
        text = self.headers.get("retry-after", "").strip()
        return float(text) if _DELAY.fullmatch(text) else _seconds_until(text)

    def json(self) -> Any:
        """Parse the body as JSON. Raises `Transient` if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise Transient("The provider's answer is not JSON.") from None

    async def submit_json(self) -> Any:
        """Parse the response to a submit as JSON. None for an error status without JSON.

        Runs in a thread, because a response with a large picture has 45 MB. Raises
        `SubmitUncertain` for a 2xx that is not JSON: the vendor produced something, but we cannot
        get it.
        """
        try:
            return await asyncio.to_thread(self.json)
        except Transient:
            if self.status in range(200, 300):
                raise SubmitUncertain("The response reports success, but is not JSON.") from None
            return None

    @staticmethod
    async def decoded(encoded: str) -> bytes:
        """Decode a Base64 file from the JSON.

        Raises `SubmitUncertain` for invalid Base64: the vendor produced something, but we cannot
        get it.
        """
        try:
            return await asyncio.to_thread(_decode_base64, encoded)
        except ValueError:
            raise SubmitUncertain("The provider's file is not Base64.") from None

    def check(self, *, not_begun: Collection[int] = ()) -> None:
        """Raise the error that the status means; return for a 2xx.

        `not_begun` has the statuses with which the vendor documents that it is too busy to begin:
        `NotAccepted`, with the wait that it asks for. Only an answer in JSON or with a Retry-After
        counts. Proxies use the same statuses if the vendor broke off in the middle of its work.

        A 5xx, or any status without a case here, does not show whether the vendor acted: raises
        `SubmitUncertain` if the request may be billed and `Transient` otherwise. Adapters with
        better knowledge of their vendor's errors read the body first.
        """
        if self.status in not_begun and (self.retry_after_s is not None or self._is_object):
            text = f"The provider is too busy to begin: status {self.status}."
            raise NotAccepted(text, retry_after_s=self.retry_after_s)
        error = _status_error(self)
        if error is not None:
            raise error

    @property
    def _is_object(self) -> bool:
        try:
            return isinstance(self.json(), dict)
        except Transient:
            return False

    def check_poll(self) -> None:
        """Raise the error that a poll's status means; return for a 2xx.

        A poll contains no input of the buyer. So a 400 says nothing about the job: it raises
        `Transient`, and the job is polled again.
        """
        if self.status in _INPUT:
            raise Transient(f"The provider answers with status {self.status}.")
        self.check()


def _decode_base64(encoded: str) -> bytes:
    """Decode in steps: decoding 45 MB at once would block every other thread for 0.1 s.

    Accepts a `data:` URI, line breaks and missing padding, which some servers send.
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
    """Append decoded Base64, after this number of characters was decoded."""
    if encoded and len(data) * 4 != decoded * 3:
        raise ValueError("padding in the middle")
    data += base64.b64decode(encoded, validate=True)


def _status_error(answer: Answer) -> ProviderError | None:
    status = answer.status
    if status in range(200, 300):
        return None
    message = f"The provider answers with status {status}."
    if status == _NOT_FOUND:
        return AccountProblem(message, scope="model")
    if (status in _ACCOUNT and not _is_firewall_block(answer)) or status in REDIRECTS:
        return AccountProblem(message)
    if status in _INPUT:
        return InvalidInput("The provider cannot work with this input.")
    if status == _TOO_MANY:
        asked_s = answer.retry_after_s
        wait_s = _RETRY_AFTER_S if asked_s is None else asked_s
        return RateLimited("The provider asks to wait.", retry_after_s=wait_s)
    return SubmitUncertain(message) if answer.may_be_billed else Transient(message)


def _is_firewall_block(answer: Answer) -> bool:
    """Whether a 403 is a firewall's, and so means nothing for the key.

    The APIs themselves respond with JSON or an empty body.
    """
    if answer.status != _FORBIDDEN or not answer.body.strip():
        return False
    try:
        json.loads(answer.body)
    except (ValueError, RecursionError):
        return True
    return False


def _seconds_until(date: str) -> float | None:
    """Return the time until an HTTP date; None if it is none."""
    try:
        return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
