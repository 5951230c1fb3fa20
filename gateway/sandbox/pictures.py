"""The gateway's side: hands each picture to a child process, and believes only what that says."""

import json
import os
from typing import Any

import attrs

from gateway.domain import Link, Output, Result
from gateway.errors import ContentPolicy, ResultUnusable
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLimits, SandboxRefusal

MEDIA_TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}
_MAX_BYTES = 64_000_000  # of one picture; 25 million pixels of noise have 75


def _sandbox() -> Sandbox:
    limits = SandboxLimits(
        memory_bytes=1_500_000_000,  # decoded, converted and encoded, and as much again
        cpu_s=60,
        wall_s=90.0,  # a 4K picture takes 3 s of one ordinary core
        children=os.cpu_count() or 1,
        answer_bytes=128_000_000,  # 25 million pixels of noise with their transparency have 100
    )
    child = "gateway.sandbox.pictures_child"
    return Sandbox(function=f"{child}:check", warm=(f"{child}:load_decoders",), limits=limits)


@attrs.define
class Pictures:
    """Checks what providers of pictures return; as many at once as there are processors."""

    _sandbox: Sandbox = attrs.field(factory=_sandbox)

    async def check(self, result: Result, output_format: str | None) -> Result:
        """Return the result with every picture decoded, measured, and in the wanted format.

        A picture that is right already keeps its bytes. Raises `ContentPolicy` where there is no
        picture, which is how many an API refuses, `ResultUnusable` for one that cannot be sold, and
        `SandboxLost` where this machine could not look: that says nothing about the picture.
        """
        if not result.outputs:
            raise ContentPolicy("The provider returned no picture for this prompt.")
        checked = [await self._check(output, output_format or "") for output in result.outputs]
        return attrs.evolve(result, outputs=tuple(checked))

    def close(self) -> None:
        """End the process that looks at pictures; the next picture starts another."""
        self._sandbox.close()

    async def _check(self, output: Output | Link, wanted: str) -> Output:
        if isinstance(output, Link):
            raise TypeError("A link is fetched before it is checked.")
        if not output.data or len(output.data) > _MAX_BYTES:
            raise ResultUnusable(f"The provider's picture has {len(output.data)} bytes.")
        told, made = await self._ask(wanted, output.data)
        facts: dict[str, Any] = json.loads(told)
        return Output(
            data=made or output.data,
            media_type=MEDIA_TYPES[facts["format"]],
            width=facts["width"],
            height=facts["height"],
        )

    async def _ask(self, wanted: str, data: bytes) -> tuple[bytes, ...]:
        try:
            return await self._sandbox.call_parts(wanted, data)
        except SandboxRefusal as error:
            raise ResultUnusable(f"The provider's picture is not right: {error}.") from None
        except SandboxEnded as error:
            raise ResultUnusable(
                f"The provider's picture ended its decoder: {error.end}."
            ) from error
