"""Validates the picture that a buyer sends to be edited, before the buyer pays."""

import attrs

from gateway.domain import (
    MAX_PICTURE_PIXELS,
    MIN_PICTURE_SIDE,
    PICTURE_FORMATS,
    Attachment,
)
from gateway.errors import ExecutionError, InvalidInput
from gateway.sandbox import (
    UNPAID_NICE,
    Sandbox,
    SandboxEnded,
    SandboxLimits,
    SandboxLost,
    SandboxRefusal,
)

_NAMES = {"png": "PNG", "jpg": "JPEG", "webp": "WebP"}
_REASONS = {
    "out of time": "it takes too much time",
    "out of memory": "it takes too much memory",
    "crashed": "the picture is damaged, or it takes too much memory",
}
# 25 million pixels take a second and, if progressive, up to 300 MB.
_LIMITS = SandboxLimits(
    memory_bytes=600_000_000, cpu_s=5, wall_s=15.0, answer_bytes=100, nice=UNPAID_NICE
)


def _make_sandbox() -> Sandbox:
    child = "gateway.sandbox.pictures_child"
    return Sandbox(function=f"{child}:measure", warm=(f"{child}:load_decoders",), limits=_LIMITS)


@attrs.define
class SentPictures:
    """Decodes pictures in a sandboxed process, because the sender has not paid yet."""

    _sandbox: Sandbox = attrs.field(factory=_make_sandbox)

    async def check(self, attachment: Attachment) -> None:
        """Require a complete, still PNG, JPEG or WebP of the right size, named correctly.

        Raises `InvalidInput` with a message for the buyer, and `ExecutionError` if the sandbox
        fails.
        """
        try:
            found = await self._sandbox.call(
                attachment.data, str(MIN_PICTURE_SIDE), str(MAX_PICTURE_PIXELS)
            )
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

    def close(self) -> None:
        """End the decoding process; the next picture starts another."""
        self._sandbox.close()
