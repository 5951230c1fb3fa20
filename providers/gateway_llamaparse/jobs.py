"""The provider: what is uploaded, begun, and asked for."""

from typing import Any
from urllib.parse import quote

import attrs

from gateway import (
    AccountProblem,
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
    attached_file,
    blamed_fields,
    check_job,
    json_object,
    media_type,
    read_json,
)
from gateway_llamaparse.settings import PARSER

_REQUEST_S = 60.0
_OURS = {"tier", "version", "page_ranges", "processing_control"}  # fields that no buyer sets
_FILE_FAULTS = (
    "UNSUPPORTED_FILE_TYPE",
    "PDF_IS_PROTECTED",
    "PDF_IS_BROKEN",
    "NO_DATA_FOUND_IN_FILE",
    "DOCUMENT_TOO_LARGE",
    "TOO_MANY_PAGES",
)


@attrs.frozen
class _Created:
    """A file that was uploaded, or a job that was begun."""

    id: str


@attrs.frozen
class _Job:
    status: str
    error_message: Any = None
    error_code: Any = None


@attrs.frozen
class _Page:
    markdown: str | None = None
    success: bool = True


@attrs.frozen
class _Markdown:
    pages: list[_Page]


@attrs.frozen
class _State:
    job: _Job
    markdown: _Markdown | None = None


@attrs.define
class Jobs:
    """Asks `POST /api/v1/beta/files`, `POST /api/v2/parse`, then `GET /api/v2/parse/{id}`."""

    outbound: Outbound
    version: str = attrs.field(kw_only=True)
    page_cost_micros: int | None = attrs.field(kw_only=True)
    traits: Traits = attrs.field(kw_only=True)
    name: str = PARSER.name

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Upload one document, which costs nothing, and begin to parse it, which is billed."""
        order = {
            "file_id": await self._uploaded(request),
            "tier": job.endpoint.model,
            "version": self.version,
            "page_ranges": {"max_pages": request.pages or job.endpoint.max_pages},
            "processing_control": {  # a document without some of its pages is not sold
                "job_failure_conditions": {"allowed_page_failure_ratio": 0}
            },
        }
        answer = await self.outbound.request(
            "POST", "/api/v2/parse", json=order, timeout_s=_REQUEST_S
        )
        if answer.status not in range(200, 300):
            if blamed_fields(json_object(answer)) & _OURS:
                raise AccountProblem("The provider does not know the tier or its version.")
            answer.check()
        created = await read_json(answer, _Created)
        if created is None or not created.id:
            raise SubmitUncertain("Answered with success, but without a job.")
        return Handle(id=created.id)

    async def _uploaded(self, request: GenerationRequest) -> str:
        """Return the id of the file; whatever becomes of an upload, nothing is billed."""
        attachment = attached_file(request)
        name = f"document{attachment.extension}"  # the real one is the buyer's affair
        files = {
            "purpose": ("", b"parse", "text/plain"),  # no name: a field of the form, not a file
            "file": (name, attachment.data, media_type(attachment)),
        }
        answer = await self.outbound.request(
            "POST", "/api/v1/beta/files", files=files, timeout_s=_REQUEST_S, bills=False
        )
        answer.check()
        created = await read_json(answer, _Created)
        if created is None or not created.id:
            raise Transient("The upload was answered without a file.")
        return created.id

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Ask for a job, and for its pages once they are there."""
        where = f"/api/v2/parse/{quote(handle.id, safe='')}?expand=markdown"
        answer = await self.outbound.request("GET", where, timeout_s=_REQUEST_S)
        check_job(answer)
        state = await read_json(answer, _State)
        if state is None:
            raise Transient("The answer tells nothing about the job.")
        if state.job.status in ("PENDING", "RUNNING"):
            return Pending(note=state.job.status.lower())
        if state.job.status != "COMPLETED":
            raise _verdict(state.job)
        if state.markdown is None:
            raise Transient("The job is done, and its Markdown is not there.")
        return self._result(state.markdown.pages)

    def _result(self, pages: list[_Page]) -> Result:
        texts = [page.markdown for page in pages if page.success and page.markdown is not None]
        if not texts or len(texts) < len(pages):
            # Billed all the same, so not parsed anew: half a document is not sold, but owed back.
            raise InvalidInput("The provider could not read every page of this document.")
        cost = None if self.page_cost_micros is None else self.page_cost_micros * len(texts)
        return Result(text="\n\n".join(texts), cost_micros=cost)

    async def health(self) -> None:
        """Look whether the key is taken: the list of jobs costs nothing."""
        (await self.outbound.request("GET", "/api/v2/parse?page_size=1", timeout_s=10.0)).check()

    async def close(self) -> None:
        """Hang up."""
        await self.outbound.close()


def _verdict(job: _Job) -> Exception:
    """Return what a job that ended badly, or is in a state nobody has heard of, stands for."""
    if job.status not in ("FAILED", "CANCELLED"):
        return Transient(f"The job is {job.status[:40]!r}.")
    told = f"{job.error_code} {job.error_message}"
    if any(fault in told for fault in _FILE_FAULTS):
        return InvalidInput("The provider cannot read this document.")
    return JobFailed(f"The job ended as {job.status}.")
