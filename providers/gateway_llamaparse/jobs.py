"""The provider: uploads a file, starts a job that parses it, and polls the job."""

from collections.abc import Mapping
from typing import Any, ClassVar
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
    as_number,
    as_object,
    attached_file,
    blamed_fields,
    check_job,
    json_object,
    media_type,
    paid_pages,
    read_json,
)
from gateway_llamaparse.settings import PARSER

REQUEST_S = 60.0
_FILE_FAULTS = (
    "UNSUPPORTED_FILE_TYPE",
    "PDF_IS_PROTECTED",
    "PDF_IS_BROKEN",
    "NO_DATA_FOUND_IN_FILE",
    "DOCUMENT_TOO_LARGE",
    "TOO_MANY_PAGES",
)
# One credit in 10⁻⁶ US dollars: 1,000 cost 1.25.
_CREDIT_MICROS = 1_250


@attrs.frozen
class _Created:
    """An uploaded file, or a started job."""

    id: str


@attrs.frozen
class _Job:
    status: str
    error_message: Any = None
    error_code: Any = None
    usage: Any = None
    """The usage of the job, once it is done; `credits` are billed."""


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
    """Uses `POST /api/v1/beta/files`, `POST /api/v2/parse`, then `GET /api/v2/parse/{id}`."""

    outbound: Outbound
    version: str = attrs.field(kw_only=True)
    page_cost_micros: int | None = attrs.field(kw_only=True)
    traits: Traits = attrs.field(kw_only=True)
    name: str = PARSER.name
    purpose: ClassVar[str] = "parse"
    # Fields set by the adapter, not the buyer.
    own_fields: ClassVar[set[str]] = {"tier", "version", "processing_control"}

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Upload one document, which is free, and start a job, which is billed."""
        order = {
            "file_id": await self.upload(request),
            "tier": job.endpoint.model,
            "version": self.version,
            "page_ranges": {"max_pages": paid_pages(request, job.endpoint)},
            # An incomplete document is not sold.
            "processing_control": {"job_failure_conditions": {"allowed_page_failure_ratio": 0}},
        }
        return await self.start_job("/api/v2/parse", order)

    async def start_job(self, path: str, order: Mapping[str, Any], *, buyers: str = "") -> Handle:
        """Start a job; `buyers` is the field whose inner names the buyer chose."""
        answer = await self.outbound.request("POST", path, json=order, timeout_s=REQUEST_S)
        if answer.status not in range(200, 300):
            if blamed_fields(json_object(answer), buyers=buyers) & self.own_fields:
                raise AccountProblem("The provider does not know the tier or its version.")
            answer.check()
        created = await read_json(answer, _Created)
        if created is None or not created.id:
            raise SubmitUncertain("The response reports success, but has no job.")
        return Handle(id=created.id)

    async def upload(self, request: GenerationRequest) -> str:
        """Upload the file and return its id; LlamaParse does not bill uploads."""
        attachment = attached_file(request)
        # The buyer's file name is not sent.
        name = f"document{attachment.extension}"
        files = {
            # Without a name, this is a form field and not a file.
            "purpose": ("", self.purpose.encode(), "text/plain"),
            "file": (name, attachment.data, media_type(attachment)),
        }
        answer = await self.outbound.request(
            "POST", "/api/v1/beta/files", files=files, timeout_s=REQUEST_S, bills=False
        )
        answer.check()
        created = await read_json(answer, _Created)
        if created is None or not created.id:
            raise Transient("The response to the upload has no file.")
        return created.id

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Get a job, with its pages if it is done."""
        where = f"/api/v2/parse/{quote(handle.id, safe='')}?expand=markdown"
        answer = await self.outbound.request("GET", where, timeout_s=REQUEST_S)
        check_job(answer)
        state = await read_json(answer, _State)
        if state is None:
            raise Transient("The response has no job status.")
        if state.job.status in ("PENDING", "RUNNING"):
            return Pending(note=state.job.status.lower())
        if state.job.status != "COMPLETED":
            raise job_error(state.job.status, f"{state.job.error_code} {state.job.error_message}")
        if state.markdown is None:
            raise Transient("The job is done, and its Markdown is not there.")
        return self._result(state.markdown.pages, state.job)

    def _result(self, pages: list[_Page], job: _Job) -> Result:
        texts = [page.markdown for page in pages if page.success and page.markdown is not None]
        if not texts or len(texts) < len(pages):
            # LlamaParse bills this job, so it is not repeated. An incomplete document is not sold:
            # the task fails and a refund is due.
            raise InvalidInput("The provider could not read every page of this document.")
        text = "\n\n".join(texts)
        return self.result(text, job.usage, len(texts))

    def result(self, text: str, usage: Any, pages: int | None) -> Result:
        """Return a result with its cost: reported by the job, else the operator's cost per page."""
        if (spent := as_number(as_object(usage).get("credits"))) is not None:
            return Result(text=text, cost_micros=round(spent * _CREDIT_MICROS), pages=pages)
        page_cost = self.page_cost_micros
        cost = None if page_cost is None or pages is None else page_cost * pages
        return Result(text=text, cost_micros=cost, is_cost_told=False, pages=pages)

    async def cancel(self, handle: Handle) -> None:
        """Ask LlamaParse to stop a job; whether it bills a stopped job is unknown."""
        where = f"/api/v2/parse/{quote(handle.id, safe='')}/cancel"
        answer = await self.outbound.request("POST", where, timeout_s=REQUEST_S, bills=False)
        check_job(answer)

    async def health(self) -> None:
        """Check the key by listing jobs, which is free."""
        (await self.outbound.request("GET", "/api/v2/parse?page_size=1", timeout_s=10.0)).check()

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


def job_error(status: str, message: str) -> Exception:
    """Return the error of a job that failed or is in an unknown state; `message` is its message."""
    if status not in ("FAILED", "CANCELLED"):
        return Transient(f"The job is {status[:40]!r}.")
    if any(fault in message for fault in _FILE_FAULTS):
        return InvalidInput("The provider cannot read this document.")
    return JobFailed(f"The job ended as {status}.")
