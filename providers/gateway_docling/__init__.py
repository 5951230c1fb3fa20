"""Documents to Markdown by a docling-serve of the operator's: jobs on a machine of their own.

On sale once `GATEWAY_DOCLING_BASE_URL` is set.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import attrs
import typed_settings as ts

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
    Provider,
    Result,
    Settings,
    SubmitUncertain,
    Traits,
    Transient,
    hookimpl,
    secret,
    setting,
)
from gateway.vendors import (
    DocumentParser,
    as_object,
    attached_file,
    base64_text,
    base_url,
    blamed_fields,
    check_job,
    document_endpoint,
    json_object,
    limit_or_none,
    read_json,
)

_SUBMIT_S = 60.0  # of one request: it is answered as soon as the file has arrived
_POLL_S = 30.0
_WAITING = ("pending", "started")
_DONE = ("success", "partial_success")  # how well it went, the result says
_NOT_FOUND = 404
_OURS = {"options", "sources", "target", "kind"}  # fields that no buyer sets
_NOBODYS_JOB = "00000000-0000-0000-0000-000000000000"
_PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
_ENDINGS = (".pdf", ".docx", ".pptx", ".xlsx", ".html", ".htm", ".md", ".csv", *_PICTURES)
PARSER = DocumentParser(
    name="docling",
    slug="docling",
    title="Document to Markdown by Docling",
    description="Reads PDFs, Office files, web pages and scans into Markdown, tables included.",
    extensions=_ENDINGS,
    timeout_s=600.0,
)


@attrs.frozen(kw_only=True)
class DoclingSettings:
    """What an operator may set."""

    base_url: str = setting(
        "",
        "Address of your docling-serve. It puts `docling` on sale.",
        example="http://127.0.0.1:5001",
        switches_on=True,
        shown=False,  # some put a key into the path
    )
    api_key: ts.SecretStr = secret("Its DOCLING_SERVE_API_KEY, where it has one.")
    price: str = setting("0.02", "USDC of a document of up to 20 pages.")
    page_prices: tuple[str, ...] = setting(
        ("21:0.05", "51:0.10"),
        "USDC of longer documents: from so many pages on, a colon, the price.",
        example="21:0.05,51:0.10",
    )
    max_pages: int = setting(100, "Pages of the longest file that is taken.")
    extensions: tuple[str, ...] = setting(
        _ENDINGS,
        "Endings of the files that are taken. Pages are counted in PDF, .pptx and TIFF files.",
        example=".pdf,.docx",
    )
    max_concurrency: int = setting(2, "Documents converted at once; 0: no limit.")


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Name the settings."""
    register(PARSER.name, DoclingSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the converter on sale where there is a server."""
    section = settings.section(PARSER.name, DoclingSettings)
    if not section.base_url:
        return
    key = str(section.api_key)
    converter = Converter(
        Outbound(
            base_url(section.base_url, name="docling_base_url"),
            headers={"X-Api-Key": key} if key else {},
        ),
        traits=Traits(
            max_concurrency=limit_or_none(section.max_concurrency, name="docling_max_concurrency"),
            idempotent_submit=True,  # nobody is billed: the same again only takes its time
        ),
    )
    register(document_endpoint(PARSER, section, model="docling"), converter)


@attrs.frozen
class _Task:
    task_id: str
    task_status: str
    task_position: int | None = None
    failure: Any = None  # why, with a category, where the server is new enough to say it


@attrs.frozen
class _Document:
    md_content: str | None = None


@attrs.frozen
class _Fault:
    component_type: str = ""


@attrs.frozen
class _Conversion:
    document: _Document
    status: str
    errors: list[_Fault] = attrs.field(factory=list)


@attrs.define
class Converter:
    """Asks `POST {base}/v1/convert/source/async`, then for the task's status and its result."""

    outbound: Outbound
    traits: Traits = attrs.field(kw_only=True)
    name: str = PARSER.name

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:  # noqa: ARG002
        """Begin to convert one document."""
        answer = await self.outbound.request(
            "POST", "/v1/convert/source/async", json=await _order(request), timeout_s=_SUBMIT_S
        )
        if answer.status not in range(200, 300):
            if blamed_fields(json_object(answer)) & _OURS:
                raise AccountProblem("This version of docling-serve wants other fields.")
            answer.check()
        task = await read_json(answer, _Task)
        if task is None or not task.task_id:
            raise SubmitUncertain("Answered with success, but without a task.")
        return Handle(id=task.task_id, urls={})

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Ask how far a task is, and for its result once it is done."""
        where = quote(handle.id, safe="")
        answer = await self.outbound.request("GET", f"/v1/status/poll/{where}", timeout_s=_POLL_S)
        check_job(answer)
        task = await read_json(answer, _Task)
        if task is None:
            raise Transient("The answer tells nothing about the task.")
        if task.task_status in _WAITING:
            place = task.task_position
            return Pending(note="" if place is None else f"{place} in the queue")
        if task.task_status in _DONE:
            return await self._result(where)
        raise _verdict(task)

    async def _result(self, where: str) -> Result:
        answer = await self.outbound.request("GET", f"/v1/result/{where}", timeout_s=_SUBMIT_S)
        check_job(answer)
        found = await read_json(answer, _Conversion)
        if found is None:
            raise Transient("The answer is no result.")
        if found.status == "success" and found.document.md_content is not None:
            return Result(text=found.document.md_content)
        if found.status == "skipped" or any(
            fault.component_type == "user_input" for fault in found.errors
        ):
            raise InvalidInput("The document cannot be read: is it what its name says?")
        raise JobFailed(f"The conversion ended as {found.status[:40]!r}.")  # in part: not sold

    async def health(self) -> None:
        """Ask for a task that cannot be: who knows none has looked at the key before."""
        answer = await self.outbound.request(
            "GET", f"/v1/status/poll/{_NOBODYS_JOB}", timeout_s=_POLL_S
        )
        detail = json_object(answer).get("detail", "Not Found")
        if answer.status == _NOT_FOUND and detail != "Not Found":
            return  # "Not Found" is what FastAPI says where the whole path is not there
        answer.check()

    async def close(self) -> None:
        """Hang up."""
        await self.outbound.close()


def _verdict(task: _Task) -> Exception:
    """Return what a task that ended badly, or in a state nobody has heard of, stands for."""
    if task.task_status == "skipped" or as_object(task.failure).get("category") == "policy":
        return InvalidInput("The document is not of a kind, or a size, that is converted.")
    if task.task_status == "failure":
        return JobFailed("The conversion failed.")
    return Transient(f"The task is {task.task_status[:40]!r}.")


async def _order(request: GenerationRequest) -> dict[str, Any]:
    attachment = attached_file(request)
    return {
        "options": {"to_formats": ["md"], "image_export_mode": "placeholder"},
        "sources": [
            {
                "kind": "file",
                "base64_string": await base64_text(attachment),
                "filename": f"document{attachment.extension}",  # the name is the buyer's affair
            }
        ],
    }
