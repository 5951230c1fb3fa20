"""The provider: creates a task and polls its record."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import attrs

from gateway import (
    AccountProblem,
    ContentPolicy,
    GenerationRequest,
    Handle,
    Job,
    Link,
    Outbound,
    Pending,
    Result,
    SubmitUncertain,
    Traits,
    Transient,
)
from gateway.vendors import Model, as_number, as_object, as_text, json_object
from gateway_kie.models import request_body
from gateway_kie.refusals import UNPROCESSABLE, check_poll, check_submit, task_error

_PERCENT = 100
# One credit in 10⁻⁶ US dollars: 200 cost a dollar.
_CREDIT_MICROS = 5_000


@attrs.define
class Jobs:
    """Submits by `POST {base}/api/v1/jobs/createTask`; kie.ai cannot cancel a task."""

    outbound: Outbound
    models: Mapping[str, Model] = attrs.field(kw_only=True)
    """By slug."""
    traits: Traits = attrs.field(factory=Traits, kw_only=True)
    name: str = "kie"

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Create one task."""
        asked = request_body(self.models[job.endpoint.slug], request)
        answer = await self.outbound.request(
            "POST",
            "/api/v1/jobs/createTask",
            json={"model": job.endpoint.model, "input": asked},
        )
        body = as_object(await answer.submit_json())
        check_submit(answer, body)
        task_id = as_text(as_object(body.get("data")).get("taskId"))
        if not task_id:
            raise SubmitUncertain("kie.ai accepted the task without returning its id.")
        return Handle(id=task_id)

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Get the task's record."""
        answer = await self.outbound.request(
            "GET", f"/api/v1/jobs/recordInfo?taskId={quote(handle.id, safe='')}"
        )
        body = json_object(answer)
        task = as_object(body.get("data"))
        state = as_text(task.get("state"))
        if not state and _is_not_recorded_yet(body):
            return Pending(note="created, and not in kie.ai's records yet")
        if not state:
            check_poll(answer, body)
            raise Transient("kie.ai's response has no state.")
        if state == "fail":
            raise task_error(task)
        if state == "success":
            return Result(outputs=(_picture(task),), cost_micros=_cost_micros(task))
        done = as_number(task.get("progress"))
        return Pending(progress=None if done is None else done / _PERCENT, note=state)

    async def health(self) -> None:
        """Check that the account has credits left."""
        answer = await self.outbound.request("GET", "/api/v1/chat/credit")
        body = json_object(answer)
        check_submit(answer, body)
        left = as_number(body.get("data"))
        if left is None:
            raise Transient("kie.ai's response has no credit balance.")
        if left <= 0:
            raise AccountProblem("kie.ai has no credits left.")

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


def _is_not_recorded_yet(body: dict[str, Any]) -> bool:
    """Whether there is no record yet, as just after creating a task.

    A task that does not exist gets the same response; then the attempt's deadline ends the wait.
    """
    return body.get("code") == UNPROCESSABLE and body.get("msg") == "recordInfo is null"


def _cost_micros(task: dict[str, Any]) -> int | None:
    """Return the cost from a field that only third parties document."""
    spent = as_number(task.get("creditsConsumed"))
    return None if spent is None or spent < 0 else round(spent * _CREDIT_MICROS)


def _picture(task: dict[str, Any]) -> Link:
    """Return the picture, whose URL is JSON in a string of the JSON."""
    try:
        made = as_object(json.loads(as_text(task.get("resultJson")) or "{}"))
    except (ValueError, RecursionError):
        raise Transient("kie.ai's resultJson is not JSON.") from None
    urls = made.get("resultUrls")
    url = as_text(urls[0]) if isinstance(urls, list) and urls else ""
    if not url:
        raise ContentPolicy("The provider returned no picture for this prompt.")
    return Link(url=url, media_type="image/png")
