"""The provider: hands each request to a child process, which draws and is gone.

The gateway itself never imports Pillow or resvg, so its memory stays small.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import attrs

from gateway import Endpoint, GenerationRequest, Job, Output, Result, Traits, Transient
from gateway.sandbox.child import boot
from gateway_sandbox_image.sizes import MEDIA_TYPES, size_of

TIMEOUT_S = 60.0  # the largest picture takes 5 s of one ordinary core
_NICENESS = 10  # the gateway's own loop goes first
# The path, whose first entry is our own, stands behind the gateway's process id. The packages are
# announced, so that of the gateway nothing runs in the child but its confinement.
_START = f"""
import os, runpy, sys
parent, boot, sys.path[:] = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65536))
announce_around = runpy.run_path(boot)["announce_around"]
announce_around("gateway.sandbox.child.confinement")
from gateway.sandbox.child import confinement
confinement.die_with_parent(parent)
os.nice({_NICENESS})
confinement.filter_calls(may_read=True)
runpy.run_module("studio", run_name="__main__")
"""
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "SYSTEMROOT")  # without them Python may not even start


def _processors() -> asyncio.Semaphore:
    return asyncio.Semaphore(os.cpu_count() or 1)


@attrs.define
class Renderer:
    """Draws pictures out of words, without any AI."""

    traits: ClassVar[Traits] = Traits(idempotent_submit=True)  # the same prompt, the same picture
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
    path = (entry for entry in sys.path if entry)
    return [sys.executable, "-I", "-c", _START, str(os.getpid()), boot.__file__, here, *path]


def _cause(complaint: bytes, code: int | None) -> str:
    """Return the name of the child's error; its text might quote the prompt."""
    lines = complaint.decode(errors="replace").strip().splitlines()
    name = lines[-1].partition(":")[0] if lines else ""
    return name if name.isidentifier() else f"exit code {code}"
