"""The providers: each order runs in a fresh, limited child process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import attrs

import gateway
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLost, SandboxRefusal
from gateway.sandbox.memory_budget import SHARED
from gateway_speech import sandboxes, weights
from gateway_speech.child.speakable import find_problem

_SOUND_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "flac": "audio/flac",
    "wav": "audio/wav",
}
_TEXT_TYPES = {
    "txt": "text/plain",
    "srt": "application/x-subrip",
    "vtt": "text/vtt",
    "json": "application/json",
}
# A WAV of two channels at 48 kHz is then within the size of a result.
_MAX_WAV_S = 300
# Each sandbox has one child: further orders wait as tasks, outside of the time of an endpoint.
_TRAITS = gateway.Traits(max_concurrency=sandboxes.CHILDREN, idempotent_submit=True)


@attrs.define
class Speaker:
    """Reads texts aloud."""

    traits: ClassVar[gateway.Traits] = _TRAITS
    name: str = "speech"
    _sandbox: Sandbox = attrs.field(factory=sandboxes.speaker)

    def validate(self, request: gateway.GenerationRequest, endpoint: gateway.Endpoint) -> None:  # noqa: ARG002 - by name
        """Refuse a text that the voice cannot read."""
        if problem := find_problem(request.prompt):
            raise gateway.InvalidInput(problem)

    async def submit(self, request: gateway.GenerationRequest, job: gateway.Job) -> gateway.Result:
        """Read the text aloud; cancelling kills the child process."""
        output_format = request.output_format or "mp3"
        await job.progress(0.1)
        with _errors_of_the_gateway("text"):
            sound = await self._sandbox.call(output_format, request.prompt)
        return _file(sound, _SOUND_TYPES[output_format])

    async def close(self) -> None:
        """End the process; the next text starts another."""
        self._sandbox.close()


@attrs.define
class Listener:
    """Writes down the speech of recordings."""

    traits: ClassVar[gateway.Traits] = _TRAITS
    name: str = "speech-listener"
    model: str = attrs.field(init=False)
    # Shown by `gateway plugins`.
    notes: tuple[str, ...] = attrs.field(init=False)
    _sandbox: Sandbox = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        has_base = weights.is_installed(weights.WHISPER_BASE)
        self.model, reason = weights.choose(SHARED.total_bytes, has_base=has_base)
        self.notes = (reason,)
        self._sandbox = sandboxes.listener(self.model)

    async def submit(self, request: gateway.GenerationRequest, job: gateway.Job) -> gateway.Result:
        """Write the speech down; cancelling kills the child process."""
        output_format = request.output_format or "txt"
        await job.progress(0.1)
        with _errors_of_the_gateway("recording"):
            text = await self._sandbox.call(output_format, _recording(request))
        return gateway.Result(text=text.decode(), text_media_type=_TEXT_TYPES[output_format])

    async def close(self) -> None:
        """End the process; the next recording starts another."""
        self._sandbox.close()


@attrs.define
class Cleaner:
    """Removes the noise of recordings."""

    traits: ClassVar[gateway.Traits] = _TRAITS
    name: str = "speech-cleaner"
    _sandbox: Sandbox = attrs.field(factory=sandboxes.cleaner)

    def validate(self, request: gateway.GenerationRequest, endpoint: gateway.Endpoint) -> None:  # noqa: ARG002 - by name
        """Refuse a recording whose result would be too large."""
        seconds = request.measure(gateway.SECOND)
        if request.output_format == "wav" and seconds > _MAX_WAV_S:
            raise gateway.InvalidInput(
                f"A WAV of {seconds:,.0f} seconds would be too large; {_MAX_WAV_S} are allowed: "
                "choose flac."
            )

    async def submit(self, request: gateway.GenerationRequest, job: gateway.Job) -> gateway.Result:
        """Remove the noise; cancelling kills the child process."""
        output_format = request.output_format or "flac"
        await job.progress(0.1)
        with _errors_of_the_gateway("recording"):
            sound = await self._sandbox.call(output_format, _recording(request))
        return _file(sound, _SOUND_TYPES[output_format])

    async def close(self) -> None:
        """End the process; the next recording starts another."""
        self._sandbox.close()


def _recording(request: gateway.GenerationRequest) -> bytes:
    if request.attachment is None:
        raise gateway.InvalidInput("There is no recording: send fileBase64 and fileName.")
    return request.attachment.data


def _file(data: bytes, media_type: str) -> gateway.Result:
    return gateway.Result(outputs=(gateway.Output(data=data, media_type=media_type),))


@contextmanager
def _errors_of_the_gateway(thing: str) -> Iterator[None]:
    """Convert the sandbox's errors inside the block into the gateway's."""
    try:
        yield
    except SandboxRefusal as error:
        raise gateway.InvalidInput(str(error)) from None
    except SandboxEnded as error:
        raise gateway.InvalidInput(
            f"The {thing} takes too much time or memory: send a shorter one."
        ) from error
    except SandboxLost as error:
        raise gateway.Transient(f"The model could not run: {error}") from error
