"""The provider: each picture is drawn or restyled by a child process, which then exits.

The gateway itself never imports Pillow or resvg, which keeps its memory small.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import attrs

from gateway import GenerationRequest, Job, Output, Result, Traits, Transient
from gateway.sandbox.child import boot
from gateway.sandbox.memory_budget import SHARED
from gateway.sandbox.memory_reservation import Reservation
from gateway_sandbox_image.sizes import MEDIA_TYPES, size_of

# The largest picture takes 5 s of one ordinary core.
TIMEOUT_S = 60.0
# The gateway's own process has a higher priority.
_NICENESS = 10
# The memory of a process, measured: without a picture, per pixel of a drawn one, and for the
# largest picture to restyle.
_PROCESS_BYTES = 60_000_000
_BYTES_PER_PIXEL = 11
_RESTYLED_BYTES = 180_000_000
# The child's arguments: the gateway's process id, the boot script, and the import path with this
# folder first. The boot script announces the packages, so that the child runs nothing of the
# gateway but its confinement.
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
# Python may not start without these variables.
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "SYSTEMROOT")


@attrs.define
class Renderer:
    """Draws pictures from the words of a prompt, and restyles the buyer's, without AI."""

    # The same prompt always gives the same picture.
    traits: ClassVar[Traits] = Traits(idempotent_submit=True)
    name: str = "sandbox"
    timeout_s: float = TIMEOUT_S

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Draw the prompt, or restyle the buyer's picture.

        Raises `Transient` if the child process fails or takes too long.
        """
        output_format = request.output_format or "png"
        order = {"prompt": request.prompt, "output_format": output_format}
        if request.attachment is not None:
            data = await self._draw(
                {**order, "restyle": True}, job, _RESTYLED_BYTES, request.attachment.data
            )
            return Result(outputs=(Output(data=data, media_type=MEDIA_TYPES[output_format]),))
        size = size_of(request.aspect_ratio or "1:1", request.resolution or "1K")
        sides = {"width": size.width_1k, "height": size.height_1k}
        scales = {"scale": size.scale, "enlarge": size.enlarge}
        output = Output(
            data=await self._draw(
                {**order, **sides, **scales}, job, size.width * size.height * _BYTES_PER_PIXEL
            ),
            media_type=MEDIA_TYPES[output_format],
            width=size.width,
            height=size.height,
        )
        return Result(outputs=(output,))

    async def _draw(
        self, order: Mapping[str, object], job: Job, picture_bytes: int, picture: bytes = b""
    ) -> bytes:
        """Draw once this machine has the memory, which is `picture_bytes` and the program's own."""
        needed_bytes = _PROCESS_BYTES + picture_bytes
        reservation = Reservation(
            need_bytes=needed_bytes,
            most_bytes=needed_bytes,
            is_paid=True,
            group=self,
            at_once=os.cpu_count() or 1,
        )
        async with SHARED.held(reservation):
            await job.progress(0.1)
            data = await draw(order, picture, timeout_s=self.timeout_s)
        await job.progress(0.95)
        return data


async def draw(order: Mapping[str, object], picture: bytes = b"", *, timeout_s: float) -> bytes:
    """Draw one order in a child process; cancelling kills the child.

    `picture` is the file to restyle, for an order with `restyle`.
    """
    process = await asyncio.create_subprocess_exec(
        *_command(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
    )
    try:
        async with asyncio.timeout(timeout_s):
            data, stderr = await process.communicate(json.dumps(order).encode() + b"\n" + picture)
    except TimeoutError:
        raise Transient(f"Drawing took longer than {timeout_s:g} seconds.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Transient(f"Drawing failed: {_cause(stderr, process.returncode)}.")
    return data


def _command() -> list[str]:
    """Use an isolated Python with the gateway's import path."""
    here = str(Path(__file__).parent)
    path = (entry for entry in sys.path if entry)
    return [sys.executable, "-I", "-c", _START, str(os.getpid()), boot.__file__, here, *path]


def _cause(stderr: bytes, code: int | None) -> str:
    """Return only the error's class: its text might quote the prompt."""
    lines = stderr.decode(errors="replace").strip().splitlines()
    name = lines[-1].partition(":")[0] if lines else ""
    return name if name.isidentifier() else f"exit code {code}"
