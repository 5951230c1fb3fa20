"""The gateway's side: hands each picture to a child process, and believes only what that says."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import attrs

from gateway.domain import Output, Result
from gateway.errors import ContentPolicy, Transient

MEDIA_TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}
_MAX_BYTES = 64_000_000  # of one picture; 25 million pixels of noise have 75
_TIMEOUT_S = 90.0  # a 4K picture takes 3 s of one ordinary core
_CHILD = str(Path(__file__).with_name("child.py"))
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "SYSTEMROOT")  # without them Python may not even start


def _processors() -> asyncio.Semaphore:
    return asyncio.Semaphore(os.cpu_count() or 1)


@attrs.define
class Pictures:
    """Checks what providers of pictures return; as many at once as there are processors."""

    _free: asyncio.Semaphore = attrs.field(factory=_processors)

    async def check(self, result: Result, output_format: str | None) -> Result:
        """Return the result with every picture decoded, measured, and in the wanted format.

        A picture that is right already keeps its bytes. Raises `ContentPolicy` where there is no
        picture, which is how many an API refuses, and `Transient` for one that cannot be sold.
        """
        if not result.outputs:
            raise ContentPolicy("The provider returned no picture for this prompt.")
        checked = [await self._check(output, output_format or "") for output in result.outputs]
        return attrs.evolve(result, outputs=tuple(checked))

    async def _check(self, output: Output, wanted: str) -> Output:
        if not output.data or len(output.data) > _MAX_BYTES:
            raise Transient(f"The provider's picture has {len(output.data)} bytes.")
        async with self._free:
            facts, made = await _ask(wanted.encode() + b"\n" + output.data)
        if "refused" in facts:
            raise Transient(f"The provider's picture is not right: {facts['refused']}.")
        return Output(
            data=made or output.data,
            media_type=MEDIA_TYPES[facts["format"]],
            width=facts["width"],
            height=facts["height"],
        )


async def _ask(order: bytes) -> tuple[dict[str, Any], bytes]:
    """Have a child look at one picture; it is killed with whoever waits for it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", _CHILD, *filter(None, sys.path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            answer, _ = await process.communicate(order)
    except TimeoutError:
        raise Transient("The provider's picture takes too long to decode.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Transient(f"The provider's picture ended its decoder: {process.returncode}.")
    line, _, made = answer.partition(b"\n")
    facts: dict[str, Any] = json.loads(line)
    return facts, made
