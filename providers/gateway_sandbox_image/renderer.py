"""The provider: hands each request to a child process, which draws and is gone.

The gateway itself never imports Pillow or resvg, so its memory stays small.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs

from gateway import Endpoint, GenerationRequest, Job, Output, Result, Transient
from gateway_sandbox_image.sizes import MEDIA_TYPES, size_of

TIMEOUT_S = 60.0  # the largest picture takes 5 s of one ordinary core
_START = (
    "import runpy, sys; sys.path[:] = sys.argv[1:]; runpy.run_module('studio', run_name='__main__')"
)
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "SYSTEMROOT")  # without them Python may not even start


def _processors() -> asyncio.Semaphore:
    return asyncio.Semaphore(os.cpu_count() or 1)


@attrs.define
class Renderer:
    """Draws pictures out of words, without any AI."""

    name: str = "sandbox"
    timeout_s: float = TIMEOUT_S
    _free: asyncio.Semaphore = attrs.field(factory=_processors, init=False)

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Accept everything: whatever the endpoint allows can be drawn."""

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Draw the prompt.

        Raises `Transient` where the child process fails or takes too long.
        """
        size = size_of(request.aspect_ratio or "1:1", request.resolution or "1K")
        output_format = request.output_format or "png"
        order = {
            "prompt": request.prompt,
            "width": size.width_1k,
            "height": size.height_1k,
            "scale": size.scale,
            "enlarge": size.enlarge,
            "output_format": output_format,
        }
        async with self._free:
            await job.progress(0.1)
            data = await draw(order, timeout_s=self.timeout_s)
        await job.progress(0.95)
        output = Output(
            data=data,
            media_type=MEDIA_TYPES[output_format],
            width=size.width,
            height=size.height,
        )
        return Result(outputs=(output,))


async def draw(order: Mapping[str, object], *, timeout_s: float) -> bytes:
    """Have a child process draw one order; it is killed with whoever waits for it."""
    process = await asyncio.create_subprocess_exec(
        *_command(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
    )
    try:
        async with asyncio.timeout(timeout_s):
            data, complaint = await process.communicate(json.dumps(order).encode())
    except TimeoutError:
        raise Transient(f"Drawing took longer than {timeout_s:g} seconds.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Transient(f"Drawing failed: {_cause(complaint, process.returncode)}.")
    return data


def _command() -> list[str]:
    """Return the child's command: isolated, yet it finds what we find, installed or not."""
    here = str(Path(__file__).parent)
    return [sys.executable, "-I", "-c", _START, here, *(path for path in sys.path if path)]


def _cause(complaint: bytes, code: int | None) -> str:
    """Return the name of the child's error; its text might quote the prompt."""
    lines = complaint.decode(errors="replace").strip().splitlines()
    name = lines[-1].partition(":")[0] if lines else ""
    return name if name.isidentifier() else f"exit code {code}"
