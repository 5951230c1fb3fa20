"""Validates pictures in a child process, and trusts only that process's report.

`Pictures` checks a provider's results, `SentPictures` puts right what a buyer sends to be edited.
"""

import json
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs

from gateway.domain import (
    MAX_FILE_BYTES,
    MAX_PICTURE_PIXELS,
    MIN_PICTURE_SIDE,
    PICTURE_FORMATS,
    PICTURE_TYPES,
    Attachment,
    Link,
    Output,
    Result,
)
from gateway.domain.offers import MAX_OUTPUTS, MAX_RESULT_BYTES
from gateway.errors import (
    ContentPolicy,
    ExecutionError,
    InvalidInput,
    NotAsOrdered,
    ResultUnusable,
)
from gateway.sandbox import (
    UNPAID_NICE,
    Sandbox,
    SandboxEnded,
    SandboxLimits,
    SandboxLost,
    SandboxRefusal,
)

MEDIA_TYPES = PICTURE_TYPES
# Per picture. 25 million pixels of noise take 75 MB.
MAX_PICTURE_BYTES = 64_000_000
_NAMES = {"png": "PNG", "jpg": "JPEG", "webp": "WebP"}
_REASONS = {
    "out of time": "it takes too much time",
    "out of memory": "it takes too much memory",
    "crashed": "the picture is damaged, or it takes too much memory",
}


def _make_sandbox(child: str, function: str, limits: SandboxLimits) -> Callable[[], Sandbox]:
    module = f"gateway.sandbox.{child}"
    load = f"{module}:load_decoders"
    return lambda: Sandbox(function=f"{module}:{function}", warm=(load,), limits=limits)


# Twice the memory needed to decode, convert and encode a picture. A 4K picture takes 3 s of one
# ordinary core. 25 million pixels of noise with transparency take 100 MB.
_AFTER_PAYMENT = SandboxLimits(
    memory_bytes=1_500_000_000,
    cpu_s=60,
    wall_s=90.0,
    children=os.cpu_count() or 1,
    answer_bytes=128_000_000,
)
# 25 million pixels take 2 s; as WebP up to 5 s, and 500 MB more than the decoded picture.
_BEFORE_PAYMENT = SandboxLimits(
    memory_bytes=900_000_000,
    cpu_s=10,
    wall_s=20.0,
    answer_bytes=MAX_FILE_BYTES + 100,
    nice=UNPAID_NICE,
)


@attrs.define(eq=False, repr=False)
class Pictures:
    """Validates the pictures that providers return, one per CPU at a time."""

    _sandbox: Sandbox = attrs.field(
        factory=_make_sandbox("pictures_child", "check", _AFTER_PAYMENT)
    )

    async def check(self, result: Result, output_format: str | None) -> Result:
        """Return the result with every picture decoded, measured, and in the requested format.

        A valid picture in the right format keeps its bytes. `output_format` None keeps the format.

        Raises `ContentPolicy` for a result without pictures, which is how many APIs refuse a
        prompt; `NotAsOrdered` for a picture of one flat colour, which is how others do;
        `ResultUnusable` for a picture that cannot be sold; `SandboxLost` if the sandbox
        failed, which has nothing to do with the picture.
        """
        if not result.outputs:
            raise ContentPolicy("The provider returned no picture for this prompt.")
        outputs = await check_each(
            result.outputs, lambda output: self.check_one(output, output_format or "")
        )
        return attrs.evolve(result, outputs=outputs)

    def close(self) -> None:
        """End the checking process; the next picture starts another."""
        self._sandbox.close()

    async def check_one(self, output: Output | Link, wanted: str) -> Output:
        """Like `check`, for one picture; `wanted` is its format, or empty."""
        if isinstance(output, Link):
            raise TypeError("A link is fetched before it is checked.")
        if not output.data or len(output.data) > MAX_PICTURE_BYTES:
            raise ResultUnusable(f"The provider's picture has {len(output.data)} bytes.")
        try:
            report, new_bytes = await self._sandbox.call_parts(wanted, output.data)
        except SandboxRefusal as error:
            raise ResultUnusable(f"The provider's picture is not right: {error}.") from None
        except SandboxEnded as error:
            problem = f"The provider's picture ended its decoder: {error.end}."
            raise ResultUnusable(problem) from error
        facts: dict[str, Any] = json.loads(report)
        if facts.get("is_flat"):
            raise NotAsOrdered("The provider's picture shows nothing: it is one flat colour.")
        return Output(
            data=new_bytes or output.data,
            media_type=MEDIA_TYPES[facts["format"]],
            width=facts["width"],
            height=facts["height"],
        )


async def check_each(
    outputs: Sequence[Output | Link], check: Callable[[Output | Link], Awaitable[Output | Link]]
) -> tuple[Output | Link, ...]:
    """Check each output; raises `ResultUnusable` if all are too large, before or after it.

    Nothing is decoded of a result that is too large. A check may return more bytes than it got.
    """
    if len(outputs) > MAX_OUTPUTS:
        raise ResultUnusable("The result was made, but has more outputs than what is sold.")
    _refuse_large(outputs)
    checked: list[Output | Link] = []
    for output in outputs:
        checked.append(await check(output))
        _refuse_large(checked)
    return tuple(checked)


def _refuse_large(outputs: Sequence[Output | Link]) -> None:
    size = sum(len(output.data) for output in outputs if isinstance(output, Output))
    if size > MAX_RESULT_BYTES:
        raise ResultUnusable("The result was made, but is larger than what is sold.")


async def shrink_picture(data: bytes, sides: Sequence[int]) -> Sequence[bytes]:
    """Return a picture as WebP for each longest side in pixels.

    Raises `ResultUnusable` for bytes that are no picture, and `SandboxLost` if the sandbox failed.
    """
    sandbox = _make_sandbox("pictures_child", "shrink", _AFTER_PAYMENT)()
    try:
        return await sandbox.call_parts(" ".join(map(str, sides)), data)
    except (SandboxRefusal, SandboxEnded) as error:
        raise ResultUnusable(f"The picture cannot be shrunk: {error}.") from None
    finally:
        sandbox.close()


@attrs.define(eq=False, repr=False)
class SentPictures:
    """Decodes pictures in a sandboxed process, because the sender has not paid yet."""

    _sandbox: Sandbox = attrs.field(
        factory=_make_sandbox("sent_pictures_child", "put_right", _BEFORE_PAYMENT)
    )

    async def put_right(
        self, attachment: Attachment, *, most_bytes: int = MAX_FILE_BYTES
    ) -> Attachment:
        """Return the picture upright, still, in 8 bits of RGB or RGBA, and without metadata.

        It keeps its format, its name, and the hash of the buyer's bytes; if it is plain already,
        its bytes too. A JPEG or WebP with more than `most_bytes` is saved with a lower quality.
        Requires a complete, still PNG, JPEG or WebP of the right size, named
        correctly. Raises `InvalidInput` with a message for the buyer, and `ExecutionError` if the
        sandbox fails.
        """
        return (await self.read(attachment, most_bytes=most_bytes))[0]

    async def read(
        self, attachment: Attachment, *, most_bytes: int = MAX_FILE_BYTES
    ) -> tuple[Attachment, int]:
        """Like `put_right`; also return the pixels, width times height."""
        limits = (MIN_PICTURE_SIDE, MAX_PICTURE_PIXELS, min(most_bytes, MAX_FILE_BYTES))
        try:
            found, data, pixels = await self._sandbox.call_parts(attachment.data, *map(str, limits))
        except SandboxRefusal as error:
            raise InvalidInput(str(error)) from None
        except SandboxEnded as error:
            raise InvalidInput(f"The picture cannot be decoded: {_REASONS[error.end]}.") from None
        except SandboxLost as error:
            raise ExecutionError("The picture cannot be checked now.") from error
        # The vendor gets the media type by the file name.
        kind, extension = found.decode(), attachment.extension
        if PICTURE_FORMATS.get(extension) != kind:
            name = _NAMES[kind]
            raise InvalidInput(f"The name of the file ends in {extension}, but it is a {name}.")
        return attrs.evolve(attachment, data=data) if data else attachment, int(pixels)

    def close(self) -> None:
        """End the decoding process; the next picture starts another."""
        self._sandbox.close()
