"""The provider of LlamaExtract: an upload, then a job that fills a JSON Schema."""

import json
from typing import Any, ClassVar
from urllib.parse import quote

import attrs

from gateway import (
    Endpoint,
    GenerationRequest,
    Handle,
    InvalidInput,
    Job,
    Pending,
    Result,
    ResultMissing,
    Transient,
)
from gateway.vendors import (
    answer_schema,
    check_job,
    paid_pages,
    read_json,
    schema_of,
)
from gateway_llamaparse.jobs import REQUEST_S, Jobs, job_error

_PATH = "/api/v2/extract"
# LlamaIndex's limits (read 2026-11).
_MAX_LEVELS = 7


@attrs.frozen
class _Extraction:
    status: str
    extract_result: Any = None
    error_message: Any = None
    usage: Any = None
    """The usage of the job, including parsing, once it is recorded."""


@attrs.define
class ExtractJobs(Jobs):
    """Uses `POST /api/v1/beta/files`, `POST /api/v2/extract`, then `GET /api/v2/extract/{id}`."""

    name: str = "llamaextract"
    purpose: ClassVar[str] = "extract"
    own_fields: ClassVar[set[str]] = {"tier", "parse_tier", "version"}

    async def validate(
        self,
        request: GenerationRequest,
        endpoint: Endpoint,  # noqa: ARG002 - of the protocol
    ) -> None:
        """Refuse a schema that is nested deeper than LlamaExtract accepts."""
        if _levels(schema_of(request)) > _MAX_LEVELS:
            raise InvalidInput(
                f"The JSON Schema has objects in objects on more than {_MAX_LEVELS} levels."
            )

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Upload one document, which is free, and start a job, which is billed."""
        schema, tier = schema_of(request), job.endpoint.model
        configuration: dict[str, Any] = {
            "data_schema": schema or answer_schema(),
            "tier": tier,
            # Billed in addition to the extraction.
            "parse_tier": tier,
            "version": self.version,
            "max_pages": paid_pages(request, job.endpoint),
        }
        if schema is None:
            configuration["system_prompt"] = request.prompt
        order = {"file_input": await self.upload(request), "configuration": configuration}
        return await self.start_job(_PATH, order, buyers="data_schema")

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Get a job, with its data if it is done."""
        where = f"{_PATH}/{quote(handle.id, safe='')}?expand=usage"
        answer = await self.outbound.request("GET", where, timeout_s=REQUEST_S)
        check_job(answer)
        state = await read_json(answer, _Extraction)
        if state is None:
            raise Transient("The response has no job status.")
        if state.status in ("PENDING", "RUNNING"):
            return Pending(note=state.status.lower())
        if state.status != "COMPLETED":
            raise job_error(state.status, str(state.error_message))
        if not isinstance(state.extract_result, dict):
            raise ResultMissing("The document was read, but no data came.")
        text = json.dumps(state.extract_result, ensure_ascii=False)
        return self.result(text, state.usage, pages=None)

    async def cancel(self, handle: Handle) -> None:
        """Ask LlamaExtract to stop a job; whether it bills a stopped job is unknown."""
        where = f"{_PATH}/{quote(handle.id, safe='')}/cancel"
        answer = await self.outbound.request("POST", where, timeout_s=REQUEST_S, bills=False)
        check_job(answer)

    async def health(self) -> None:
        """Check the key by listing jobs, which is free."""
        (await self.outbound.request("GET", f"{_PATH}?page_size=1", timeout_s=10.0)).check()


def _levels(schema: Any) -> int:
    """Count levels with properties, without following references."""
    if isinstance(schema, list):
        return max(map(_levels, schema), default=0)
    if not isinstance(schema, dict):
        return 0
    own = schema.get("properties")
    parts = own.values() if isinstance(own, dict) else ()
    below = max((1 + _levels(part) for part in parts), default=0)
    beside = (_levels(part) for name, part in schema.items() if name != "properties")
    return max(below, *beside, 0)
