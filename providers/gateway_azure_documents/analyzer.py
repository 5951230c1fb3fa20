"""The provider: starts a job on the operator's resource and polls it there."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import attrs

from gateway import (
    AccountProblem,
    Answer,
    GenerationRequest,
    Handle,
    InvalidInput,
    Job,
    JobFailed,
    NotAccepted,
    Outbound,
    Pending,
    Result,
    SubmitUncertain,
    Traits,
    Transient,
)
from gateway.vendors import (
    attached_file,
    base64_text,
    check_job,
    json_object,
    paid_pages,
    read_json,
)
from gateway_azure_documents.settings import PARSER

_VERSION = "2024-11-30"
_REQUEST_S = 60.0
_WAITING = ("notStarted", "running")
_ENDED = ("failed", "canceled", "skipped")
# The API accepts a page range only for these files and reads others completely. So the gateway
# refuses a presentation whose slides cannot be counted reliably.
_RANGED = (".pdf", ".tif", ".tiff")
# Microsoft's v3-error-guide: ServiceUnavailable, a transient error.
_BUSY = (503,)
# The depth to which nested errors are read.
_MAX_DEPTH = 4
_FILE_FAULTS = (
    "InvalidContent",
    "InvalidContentDimensions",
    "InvalidContentLength",
    "UnsupportedContent",
    "UnsupportedMediaType",
)


@attrs.frozen
class _Page:
    """Counted but not parsed: it has a polygon for every word."""


@attrs.frozen
class _Analysis:
    content: str
    pages: list[_Page] | None = None


@attrs.frozen
class _Operation:
    status: str
    analyzeResult: _Analysis | None = None  # noqa: N815 - the API's name
    error: Any = None


@attrs.define
class Analyzer:
    """Submits by `POST {endpoint}/documentintelligence/documentModels/{model}:analyze`."""

    outbound: Outbound
    page_cost_micros: int | None = attrs.field(kw_only=True)
    traits: Traits = attrs.field(kw_only=True)
    name: str = PARSER.name

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Start a job for one document."""
        where = (
            f"/documentintelligence/documentModels/{quote(job.endpoint.model, safe='')}:analyze"
            f"?api-version={_VERSION}&outputContentFormat=markdown"
        )
        attachment = attached_file(request)
        if attachment.extension in _RANGED:
            where += f"&pages=1-{paid_pages(request, job.endpoint)}"
        order = {"base64Source": await base64_text(attachment)}
        answer = await self.outbound.request("POST", where, json=order, timeout_s=_REQUEST_S)
        _check(answer)
        return self._handle(answer.headers.get("operation-location", ""))

    def _handle(self, location: str) -> Handle:
        """Raise `SubmitUncertain` for a URL on another host."""
        job_id = urlsplit(location).path.rpartition("/")[2] if self._is_own(location) else ""
        if not job_id:
            raise SubmitUncertain("Taken, but the address of the job is not on your endpoint.")
        return Handle(id=job_id, urls={"poll": location})

    def _is_own(self, location: str) -> bool:
        own = urlsplit(self.outbound.base_url)
        try:
            given = urlsplit(location)
        except ValueError:
            # For example, an unclosed bracket.
            return False
        return (given.scheme, given.netloc.lower()) == (own.scheme, own.netloc.lower())

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Get a job, with its text if it is done. An empty page has an empty text."""
        answer = await self.outbound.request("GET", handle.urls["poll"], timeout_s=_REQUEST_S)
        check_job(answer)
        operation = await read_json(answer, _Operation)
        if operation is None:
            raise Transient("The response has no job status.")
        if operation.status in _WAITING:
            return Pending(note=operation.status, poll_after_s=answer.retry_after_s)
        if operation.status in _ENDED:
            raise _job_error(operation)
        if operation.status != "succeeded" or operation.analyzeResult is None:
            raise Transient(f"The job is {operation.status[:40]!r}, and its text is not there.")
        return self._result(operation.analyzeResult)

    def _result(self, analysis: _Analysis) -> Result:
        per_page, pages = self.page_cost_micros, analysis.pages
        cost = None if per_page is None or pages is None else per_page * len(pages)
        # A resource of the free tier reads the first two pages alone.
        read = None if pages is None else len(pages)
        return Result(text=analysis.content, cost_micros=cost, is_cost_told=False, pages=read)

    async def health(self) -> None:
        """Check that endpoint and key match, which is free."""
        where = f"/documentintelligence/info?api-version={_VERSION}"
        (await self.outbound.request("GET", where, timeout_s=10.0)).check()

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


def _check(answer: Answer) -> None:
    if answer.status in range(200, 300):
        return
    codes = set(_codes(json_object(answer).get("error")))
    if "NotSupportedApiVersion" in codes:
        raise AccountProblem(f"The resource does not know version {_VERSION} of the API.")
    if "ContentSourceTimeout" in codes:
        raise NotAccepted("The provider did not wait for the whole file.")
    answer.check(not_begun=_BUSY)


def _job_error(operation: _Operation) -> Exception:
    if set(_FILE_FAULTS).intersection(_codes(operation.error)):
        return InvalidInput("The provider cannot read this document.")
    return JobFailed(f"The job ended as {operation.status!r}.")


def _codes(error: Any, depth: int = 0) -> Iterator[str]:
    """Yield outer codes first; the innermost is the cause."""
    if not isinstance(error, dict) or depth > _MAX_DEPTH:
        return
    if isinstance(code := error.get("code"), str):
        yield code
    yield from _codes(error.get("innererror"), depth + 1)
    details = error.get("details")
    for detail in details if isinstance(details, list) else []:
        yield from _codes(detail, depth + 1)
