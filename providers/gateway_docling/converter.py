"""The provider: conversions as jobs of docling-serve."""

from typing import Any
from urllib.parse import quote

import attrs

from gateway import (
    AccountProblem,
    Endpoint,
    GenerationRequest,
    Handle,
    InvalidInput,
    Job,
    JobFailed,
    Outbound,
    Pending,
    Result,
    SubmitUncertain,
    Traits,
    Transient,
)
from gateway.vendors import (
    as_object,
    as_text,
    attached_file,
    base64_text,
    blamed_fields,
    check_job,
    json_object,
    paid_pages,
    read_json,
)

# Timeout of one request; docling-serve responds as soon as the file has arrived.
_SUBMIT_S = 60.0
_POLL_S = 30.0
_WAITING = ("pending", "started")
# The result has the status of the conversion.
_DONE = ("success", "partial_success")
_NOT_FOUND = 404
# The queue is full: "Server is busy", with a Retry-After (docling-serve 1.38).
_BUSY = (503,)
# Fields set by the adapter, not the buyer.
_ADAPTER_FIELDS = {"options", "sources", "target", "kind"}
# A 422 with one of these in its `detail` text concerns the server's policy on targets, sources and
# options (docling-serve 1.22 and later), which the buyer cannot know.
_POLICY_WORDS = (
    "target",
    "presigned",
    "too many sources",
    "not allowed",
    "configured maximum",
    "server policy",
)
# docling-serve's ErrorItem has these for a file that its reader cannot open (1.38).
_FILE_FAULTS = {"policy", "backend_failure"}
_FILE_READERS = {"user_input", "document_backend"}
_UNKNOWN_JOB = "00000000-0000-0000-0000-000000000000"


@attrs.frozen
class _Task:
    task_id: str
    task_status: str
    task_position: int | None = None
    failure: Any = None
    """The reason with its category; only recent servers report it."""


@attrs.frozen
class _Document:
    md_content: str | None = None


@attrs.frozen
class _Fault:
    component_type: str = ""
    category: str | None = None


@attrs.frozen
class _Conversion:
    status: str = ""
    document: _Document | None = None
    errors: list[_Fault] = attrs.field(factory=list)
    failure: Any = None
    """Set instead of a document: why the task failed as a whole."""


@attrs.define
class Converter:
    """Submits by `POST {base}/v1/convert/source/async`, then gets the task's status and result."""

    outbound: Outbound
    traits: Traits = attrs.field(kw_only=True)
    name: str = "docling"

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Start the conversion of one document."""
        answer = await self.outbound.request(
            "POST",
            "/v1/convert/source/async",
            json=await _request_body(request, job.endpoint),
            timeout_s=_SUBMIT_S,
        )
        if answer.status not in range(200, 300):
            _check_fields(json_object(answer))
            answer.check(not_begun=_BUSY)
        task = await read_json(answer, _Task)
        if task is None or not task.task_id:
            raise SubmitUncertain("The response reports success, but has no task.")
        return Handle(id=task.task_id, urls={})

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Get a task's status, and its result if it is done."""
        where = quote(handle.id, safe="")
        answer = await self.outbound.request("GET", f"/v1/status/poll/{where}", timeout_s=_POLL_S)
        check_job(answer)
        task = await read_json(answer, _Task)
        if task is None:
            raise Transient("The response has no task status.")
        if task.task_status in _WAITING:
            place = task.task_position
            return Pending(note="" if place is None else f"{place} in the queue")
        if task.task_status in _DONE:
            return await self._result(where)
        raise _job_error(task)

    async def _result(self, where: str) -> Result:
        answer = await self.outbound.request("GET", f"/v1/result/{where}", timeout_s=_SUBMIT_S)
        check_job(answer)
        found = await read_json(answer, _Conversion)
        if found is None or (found.document is None and found.failure is None):
            raise Transient("The answer is no result.")
        text = found.document.md_content if found.document is not None else None
        if found.status == "success" and text is not None:
            return Result(text=text)
        if found.status == "skipped" or _is_the_files(found):
            raise InvalidInput("The document cannot be read: is it what its name says?")
        # An incomplete document is not sold.
        raise JobFailed(f"The conversion ended as {found.status[:40]!r}.")

    async def health(self) -> None:
        """Poll a task that cannot exist: docling-serve checks the key before the task."""
        answer = await self.outbound.request(
            "GET", f"/v1/status/poll/{_UNKNOWN_JOB}", timeout_s=_POLL_S
        )
        detail = json_object(answer).get("detail", "Not Found")
        if answer.status == _NOT_FOUND and detail != "Not Found":
            # FastAPI responds with exactly "Not Found" if the path itself does not exist.
            return
        answer.check()

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


def _check_fields(body: dict[str, Any]) -> None:
    """Raise `AccountProblem` if the server rejects the adapter's own fields."""
    detail = as_text(body.get("detail")).lower()
    if blamed_fields(body) & _ADAPTER_FIELDS or any(word in detail for word in _POLICY_WORDS):
        raise AccountProblem("This docling-serve wants other fields, or allows less than we ask.")


def _is_the_files(found: _Conversion) -> bool:
    """Whether the file is to blame, so that a retry is useless."""
    return as_object(found.failure).get("category") in _FILE_FAULTS or any(
        fault.category in _FILE_FAULTS or fault.component_type in _FILE_READERS
        for fault in found.errors
    )


def _job_error(task: _Task) -> Exception:
    if task.task_status == "skipped" or as_object(task.failure).get("category") in _FILE_FAULTS:
        return InvalidInput("The document is not of a kind, or a size, that is converted.")
    if task.task_status == "failure":
        return JobFailed("The conversion failed.")
    return Transient(f"The task is {task.task_status[:40]!r}.")


async def _request_body(request: GenerationRequest, endpoint: Endpoint) -> dict[str, Any]:
    attachment = attached_file(request)
    return {
        "options": {
            "to_formats": ["md"],
            "image_export_mode": "placeholder",
            # Files that docling does not divide into pages are converted completely.
            "page_range": [1, paid_pages(request, endpoint)],
        },
        "sources": [
            {
                "kind": "file",
                "base64_string": await base64_text(attachment),
                # The buyer's file name is not sent.
                "filename": f"document{attachment.extension}",
            }
        ],
        # Otherwise, a server with its own store for results would return a URL.
        "target": {"kind": "inbody"},
    }
