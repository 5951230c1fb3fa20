"""The provider: one request reads a document, or extracts data from it."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from gateway import (
    AccountProblem,
    Answer,
    Attachment,
    Endpoint,
    GenerationRequest,
    InvalidInput,
    Job,
    Outbound,
    Result,
    ResultMissing,
    SubmitUncertain,
    Traits,
)
from gateway.vendors import (
    answer_schema,
    as_number,
    as_object,
    as_text,
    attached_file,
    base64_text,
    blamed_fields,
    json_object,
    media_type,
    paid_pages,
    read_json,
    schema_of,
)
from gateway_mistral.settings import PARSER, PICTURES, TIMEOUT_S

# Only these models are known to accept the field (mistralai 3.7.0).
_MODELS_WITH_BLOCKS = "mistral-ocr-4"
# docs.mistral.ai/resources/error-glossary: overloaded, or under maintenance.
_BUSY = (503,)
_BROKEN_SCHEMA = "invalid_request_json_schema"


@attrs.frozen
class _Page:
    markdown: str


@attrs.frozen
class _Reading:
    pages: list[_Page]
    usage_info: Any = None
    document_annotation: Any = None
    """JSON as a string, if a schema was sent."""


@attrs.define
class Reader:
    """Submits by `POST {base}/ocr`."""

    outbound: Outbound
    page_costs: Mapping[str, int | None] = attrs.field(kw_only=True)
    """The operator's cost of a page in 10⁻⁶ US dollars by capability, if set."""
    traits: Traits = attrs.field(kw_only=True)
    timeout_s: float = TIMEOUT_S
    name: str = PARSER.name

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Request the text of a document, or data from it. An empty page has an empty text.

        Raises `SubmitUncertain` if Mistral has read and billed it without returning a text,
        `ResultMissing` if it returned no data.
        """
        order = await _request_body(request, job.endpoint)
        if job.endpoint.extracts_data:
            order |= _annotation(request)
        answer = await self.outbound.request("POST", "/ocr", json=order, timeout_s=self.timeout_s)
        _check(answer)
        reading = await read_json(answer, _Reading)
        if reading is None or not reading.pages:
            raise SubmitUncertain("The response reports success, but has no page.")
        text = (
            _found(reading.document_annotation)
            if job.endpoint.extracts_data
            else "\n\n".join(page.markdown for page in reading.pages)
        )
        cost = self._cost_micros(reading.usage_info, job.endpoint)
        return Result(text=text, cost_micros=cost, is_cost_told=False, pages=len(reading.pages))

    def _cost_micros(self, usage: object, endpoint: Endpoint) -> int | None:
        pages = as_number(as_object(usage).get("pages_processed"))
        page_cost = self.page_costs.get(endpoint.capability)
        return None if page_cost is None or pages is None else int(pages) * page_cost

    async def health(self) -> None:
        """Check the key by listing models, which is free."""
        (await self.outbound.request("GET", "/models", timeout_s=10.0)).check()

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


async def _request_body(request: GenerationRequest, endpoint: Endpoint) -> dict[str, Any]:
    attachment = attached_file(request)
    order = {
        "model": endpoint.model,
        "document": await _document(attachment),
        "include_image_base64": False,
    }
    if endpoint.model.startswith(_MODELS_WITH_BLOCKS):
        # Repeats every paragraph with its position: several times the text, and never sold.
        order["include_blocks"] = False
    if attachment.extension not in PICTURES:
        order["pages"] = f"0-{paid_pages(request, endpoint) - 1}"
    if attachment.extension not in (".pdf", *PICTURES):
        # Mistral returns the pictures of Office files in Base64 unless the limit is 0.
        order["image_limit"] = 0
    return order


def _annotation(request: GenerationRequest) -> dict[str, Any]:
    """Request data, for a question with a schema of ours: the API needs one.

    `strict` would reject schemas with optional fields.
    """
    schema = schema_of(request)
    form = {"name": "document", "schema": schema or answer_schema(), "strict": False}
    fields: dict[str, Any] = {
        "document_annotation_format": {"type": "json_schema", "json_schema": form}
    }
    if schema is None:
        fields["document_annotation_prompt"] = request.prompt
    return fields


def _found(annotation: Any) -> str:
    if isinstance(annotation, dict):
        return json.dumps(annotation, ensure_ascii=False)
    if not isinstance(annotation, str) or not annotation:
        raise ResultMissing("The document was read, but no data came.")
    return annotation


async def _document(attachment: Attachment) -> dict[str, str]:
    kind = "image_url" if attachment.extension in PICTURES else "document_url"
    data = f"data:{media_type(attachment)};base64,{await base64_text(attachment)}"
    return {"type": kind, kind: data}


def _check(answer: Answer) -> None:
    if answer.status in range(200, 300):
        return
    error = json_object(answer)
    kind = as_text(error.get("type"))
    if kind == "invalid_model" or "model" in blamed_fields(error, buyers="json_schema"):
        raise AccountProblem(
            "The provider does not know the model: change the settings.", scope="model"
        )
    if kind == _BROKEN_SCHEMA:
        raise InvalidInput("The provider cannot work with this JSON Schema.")
    if kind == "document_parser_too_many_pages":
        raise InvalidInput("The document has more pages than the provider takes.")
    answer.check(not_begun=_BUSY)
