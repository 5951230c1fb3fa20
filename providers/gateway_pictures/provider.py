"""The providers: one cuts out, one enlarges and repairs, each picture in a fresh child process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Self

import attrs

from gateway import (
    Attachment,
    Endpoint,
    GenerationRequest,
    InvalidInput,
    Job,
    Output,
    Result,
    Traits,
    Transient,
)
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLost, SandboxRefusal
from gateway.vendors import picture_size
from gateway_pictures import sandboxes
from gateway_pictures.colours import read_colour

_MEDIA_TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}
_MAX_PIXELS = 25_000_000
# The format's own limit of a side, and the pixels that its encoder can hold on a small machine.
_WEBP_SIDE, _WEBP_PIXELS = 16_383, 9_000_000
_JPEG_SIDE = 65_500
# Further orders wait as tasks, because the wait for a process would count as time of the order.
_TRAITS = Traits(idempotent_submit=True, max_concurrency=sandboxes.CHILDREN)
_SENTENCES = {
    "out of time": "The picture takes too much time: send a smaller one.",
    "out of memory": "The picture takes too much memory: send a smaller one, or order png.",
    "crashed": "The picture is damaged, or takes too much memory.",
}


@attrs.define
class Guard:
    """Refuses pictures by the operator's filter, if there is one."""

    threshold: float = 0.0
    _scorer: Sandbox | None = None

    @classmethod
    def of(cls, threshold: float) -> Self:
        """Return a filter with this threshold; 0: no filter."""
        return cls(threshold, sandboxes.scorer() if threshold else None)

    async def check(self, picture: Attachment) -> None:
        """Raise `InvalidInput` for a picture that the filter refuses."""
        if self._scorer is None:
            return
        with _errors_of_the_gateway():
            score = float(await self._scorer.call(picture.data))
        if score >= self.threshold:
            raise InvalidInput("The picture is refused by this gateway's filter.")

    def close(self) -> None:
        """End the process."""
        if self._scorer is not None:
            self._scorer.close()


@attrs.define
class Cutter:
    """Cuts the subject out of the buyer's picture."""

    traits: ClassVar[Traits] = _TRAITS
    name: str = "pictures"
    guard: Guard = attrs.field(factory=Guard)
    _chosen: sandboxes.Chosen = attrs.field(factory=sandboxes.cutter)

    @property
    def notes(self) -> tuple[str, ...]:
        """The model that runs, and why, for `gateway plugins`."""
        return (self._chosen.note,)

    def describe(self, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint with the name of the chosen model."""
        return attrs.evolve(endpoint, model=self._chosen.model)

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:  # noqa: ARG002 - the protocol
        """Refuse a prompt that is no colour, and a picture that is too large as WebP."""
        read_colour(request.prompt)
        picture = _picture_of(request)
        _check_format(request.output_format, *picture_size(picture))
        await self.guard.check(picture)

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Cut the subject out; a cancellation kills the child process."""
        picture, output_format = _picture_of(request), request.output_format or "png"
        colour = read_colour(request.prompt)
        await job.progress(0.1)
        with _errors_of_the_gateway():
            data = await self._chosen.sandbox.call(picture.data, colour, output_format)
        return _result(data, output_format)

    async def close(self) -> None:
        """End the processes; the next picture starts others."""
        self._chosen.sandbox.close()
        self.guard.close()


@attrs.define
class Enlarger:
    """Enlarges or repairs the buyer's picture."""

    traits: ClassVar[Traits] = _TRAITS
    name: str = "pictures"
    guard: Guard = attrs.field(factory=Guard)
    _sandbox: Sandbox = attrs.field(factory=sandboxes.enlarger)

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:  # noqa: ARG002 - the protocol
        """Refuse a picture whose result would be too large."""
        picture = _picture_of(request)
        factor = _factor_of(request)
        width, height = (side * factor for side in picture_size(picture))
        if width * height > _MAX_PIXELS:
            raise InvalidInput(
                f"The result would have {width:,} x {height:,} pixels; up to {_MAX_PIXELS:,} in "
                "all are sold. Send a smaller picture, or order a smaller resolution."
            )
        _check_format(request.output_format, width, height)
        await self.guard.check(picture)

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Enlarge the picture; a cancellation kills the child process."""
        picture, output_format = _picture_of(request), request.output_format or "png"
        work = "repair" if job.endpoint.slug == "image-repair" else "enlarge"
        await job.progress(0.1)
        with _errors_of_the_gateway():
            data = await self._sandbox.call(
                picture.data, work, f"{_factor_of(request)}x", output_format
            )
        return _result(data, output_format)

    async def close(self) -> None:
        """End the processes; the next picture starts others."""
        self._sandbox.close()
        self.guard.close()


def _picture_of(request: GenerationRequest) -> Attachment:
    if request.attachment is None:
        raise InvalidInput("There is no picture: send fileBase64 and fileName.")
    return request.attachment


def _factor_of(request: GenerationRequest) -> int:
    return int((request.resolution or "1x").removesuffix("x"))


def _check_format(output_format: str | None, width: int, height: int) -> None:
    """Raise `InvalidInput` for a size that the ordered format cannot have."""
    size = f"The result would have {width:,} x {height:,} pixels"
    if output_format == "webp" and (
        max(width, height) > _WEBP_SIDE or width * height > _WEBP_PIXELS
    ):
        raise InvalidInput(
            f"{size}; webp is sold up to {_WEBP_PIXELS:,} in all and {_WEBP_SIDE:,} a side. "
            "Order png."
        )
    if output_format == "jpg" and max(width, height) > _JPEG_SIDE:
        raise InvalidInput(f"{size}; jpg is sold up to {_JPEG_SIDE:,} a side. Order png.")


def _result(data: bytes, output_format: str) -> Result:
    return Result(outputs=(Output(data=data, media_type=_MEDIA_TYPES[output_format]),))


@contextmanager
def _errors_of_the_gateway() -> Iterator[None]:
    """Convert the sandbox's errors inside the block into the gateway's."""
    try:
        yield
    except SandboxRefusal as error:
        raise InvalidInput(str(error)) from None
    except SandboxEnded as error:
        raise InvalidInput(_SENTENCES[error.end]) from None
    except SandboxLost as error:
        raise Transient(f"The pictures' process: {error}") from error
