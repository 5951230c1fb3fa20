"""What an API answered, and the error that its status stands for."""

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
_PIECE = 1 << 20  # characters of Base64 at once: whole fours; between two, the loop has its turn
_RETRY_AFTER_S = 10.0  # where a "too many requests" names no time
_ACCOUNT = (401, 402, 403, 404, 405)  # 404: the model or the address in the settings is wrong
_INPUT = (400, 413, 415, 422)
_TOO_MANY = 429


@attrs.frozen(kw_only=True)
class Answer:
    """An answer with whatever status."""

    status: int
    headers: Mapping[str, str] = attrs.field(repr=False)  # names in lower case
    body: bytes = attrs.field(repr=lambda body: f"<{len(body)} bytes>")
    may_be_billed: bool = False  # what was asked: a request that may have something made

    def json(self) -> Any:
        """Return the body as JSON; raises `Transient` where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise Transient("The provider's answer is not JSON.") from None

    async def submit_json(self) -> Any:
        """Return the JSON that a submit was answered with; None for an error without any.

        It is read in a thread: a large picture is 45 MB of it. Raises `SubmitUncertain` for a
        success that is not JSON: something was made, and is out of reach.
        """
        try:
            return await asyncio.to_thread(self.json)
        except Transient:
            if self.status in range(200, 300):
                raise SubmitUncertain("Answered with success, but not with JSON.") from None
            return None

    @staticmethod
    async def decoded(encoded: str) -> bytes:
        """Return a file that stood in the JSON as Base64.

        Raises `SubmitUncertain` for what is none: something was made, and is out of reach.
        """
        try:
            return await asyncio.to_thread(_decoded, encoded)
        except ValueError:
            raise SubmitUncertain("The provider's file is not Base64.") from None

    def check(self) -> None:
        """Raise the error that the status stands for; nothing for 2xx.

        A 5xx, or a status that is not listed here, is no clear refusal: it raises
        `SubmitUncertain` of a request that may be billed, `Transient` of any other. An adapter
        that knows its API better looks at the body first.
        """
        error = _refusal(self)
        if error is not None:
            raise error

    def check_poll(self) -> None:
        """Raise the error of a question about a job, which holds nothing of the buyer's.

        "Your input is wrong" is then no word about the job: it goes on, and is asked for again.
        """
        if self.status in _INPUT:
            raise Transient(f"The provider answers with status {self.status}.")
        self.check()


def _decoded(encoded: str) -> bytes:
    """Decode piece by piece: at once, 45 MB would keep every other thread waiting 0.1 s."""
    data = bytearray()
    for start in range(0, len(encoded), _PIECE):
        if len(data) * 4 != start * 3:
            raise ValueError("an end in the middle")
        data += base64.b64decode(encoded[start : start + _PIECE], validate=True)
    return bytes(data)


def _refusal(answer: Answer) -> ProviderError | None:
    status = answer.status
    if status in range(200, 300):
        return None
    if status in _ACCOUNT or status in REDIRECTS:
        return AccountProblem(f"The provider answers with status {status}.")
    if status in _INPUT:
        return InvalidInput("The provider cannot work with this input.")
    if status == _TOO_MANY:
        wait_s = _seconds(answer.headers.get("retry-after", ""))
        return RateLimited("The provider asks to wait.", retry_after_s=wait_s)
    kind = SubmitUncertain if answer.may_be_billed else Transient
    return kind(f"The provider answers with status {status}.")


def _seconds(text: str) -> float:
    """Return the seconds of a Retry-After; a date, which few send, counts as none named."""
    is_number = text.isascii() and text.isdigit() and len(text) < 9  # noqa: PLR2004 - three years
    return float(text) if is_number else _RETRY_AFTER_S
