"""Runs a workflow once for the operator, as a sale would."""

import asyncio
import contextlib
import time
import uuid

import attrs

from gateway import (
    PICTURE_FILE,
    Attachment,
    Endpoint,
    GenerationRequest,
    Handle,
    InvalidInput,
    RateLimited,
    Result,
    SettingsError,
    Transient,
)
from gateway_comfyui.fleet import Fleet
from gateway_comfyui.provider import ComfyUI
from gateway_comfyui.workflows import ENDINGS, Workflow

DEFAULT_PROMPT = "A small red boat on a calm sea"
_POLL_S = 0.5


@attrs.frozen
class Trial:
    """The result of a run, and its duration."""

    seconds: float
    result: Result

    def __str__(self) -> str:
        files = ", ".join(
            f"{one.media_type} of {len(one.data):,} bytes"
            for one in self.result.outputs
            if hasattr(one, "data")
        )
        return f"It made {files} in {self.seconds:.1f} s, in ComfyUI's folder output/gateway."


@attrs.define
class _UnsoldJob:
    """A job that is not stored."""

    endpoint: Endpoint
    task_id: str = attrs.field(factory=lambda: f"trial-{uuid.uuid4()}")
    attempt: int = 1

    async def progress(self, fraction: float, note: str = "") -> None:
        """Ignore progress."""

    async def save(self, handle: Handle) -> None:
        """Ignore the handle."""


async def run_once(fleet: Fleet, workflow: Workflow, prompt: str) -> Trial:
    """Return the result of one run; raises the error that ended it."""
    provider = ComfyUI(fleet, workflows={workflow.slug: workflow})
    request, job = _request(workflow, prompt), _UnsoldJob(workflow.endpoint())
    begun = time.monotonic()
    handle = await provider.submit(request, job)
    while time.monotonic() - begun < workflow.timeout_s:
        with contextlib.suppress(RateLimited, Transient):
            found = await provider.poll(handle, job)
            if isinstance(found, Result):
                return Trial(time.monotonic() - begun, found)
        await asyncio.sleep(_POLL_S)
    await provider.cancel(handle)
    raise SettingsError(
        f"It was not done after {workflow.timeout_s:g} s. Did it wait for other jobs?"
    )


def _request(workflow: Workflow, prompt: str) -> GenerationRequest:
    attachment, endpoint = None, workflow.endpoint()
    if "picture" in workflow.inputs:
        name, data = PICTURE_FILE.sample(ENDINGS) or ("", b"")
        attachment = Attachment(name=name, data=data)
    request = GenerationRequest(
        prompt=prompt if "prompt" in workflow.inputs else "",
        aspect_ratio=endpoint.aspect_ratio.default,
        resolution=endpoint.resolution.default,
        attachment=attachment,
    )
    try:
        workflow.check(request)
    except InvalidInput as error:
        raise SettingsError(f"--prompt: {error}") from None
    return request
