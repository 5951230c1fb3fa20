"""Documents and pictures of text to Markdown by Mistral's OCR, in one request without jobs.

On sale once `GATEWAY_MISTRAL_API_KEY` is set.
"""

from collections.abc import Callable
from typing import Any

import attrs
import typed_settings as ts

from gateway import (
    AccountProblem,
    Answer,
    Attachment,
    Endpoint,
    GenerationRequest,
    InvalidInput,
    Job,
    Outbound,
    Provider,
    Result,
    Settings,
    SubmitUncertain,
    Traits,
    hookimpl,
    secret,
    setting,
)
from gateway.vendors import (
    DocumentParser,
    as_number,
    as_object,
    as_text,
    attached_file,
    base64_text,
    base_url,
    blamed_fields,
    document_endpoint,
    json_object,
    limit_or_none,
    media_type,
    page_cost_micros,
    read_json,
)

# The time-out of one request, which Mistral answers after the last page.
_TIMEOUT_S = 240.0
_PICTURES = (".png", ".jpg", ".jpeg", ".avif")
# Only these models are known to take the field (mistralai 3.7.0).
_MODELS_WITH_BLOCKS = "mistral-ocr-4"
# 10⁻⁶ US dollars of one page by the beginning of the model's name, and when that was last compared
# with the vendor's prices. What `latest` means may change; now it is OCR 4.
_PAGE_COSTS = {"mistral-ocr-4": 4_000, "mistral-ocr-latest": 4_000}
CHECKED = "2026-11-22"
PARSER = DocumentParser(
    name="mistral",
    slug="mistral-ocr",
    title="Document to Markdown by Mistral OCR",
    description="Reads scanned and digital PDFs and pictures of text into Markdown.",
    extensions=(".pdf", ".docx", ".pptx", *_PICTURES),
    timeout_s=_TIMEOUT_S + 20.0,
)


@attrs.frozen(kw_only=True)
class MistralSettings:
    """The operator's settings."""

    api_key: ts.SecretStr = secret("API key of Mistral. It puts `mistral-ocr` on sale.")
    base_url: str = setting(
        "https://api.mistral.ai/v1",
        "Address of the API.",
        # Some operators put a key into the path.
        shown=False,
    )
    model: str = setting(
        "mistral-ocr-4-0",
        "Model that reads the documents. What `mistral-ocr-latest` means, and costs, changes.",
    )
    # Mistral OCR 4 costs 4 US dollars per 1,000 pages since 2026-06-23: five pages of other
    # companies say so (read 2026-11), mistral.ai's own could not be read. OCR 3 cost half of that.
    price: str = setting("0.03", "USDC of a document of up to 5 pages.")
    page_prices: tuple[str, ...] = setting(
        ("6:0.12", "21:0.30", "51:0.60"),
        "USDC of longer documents: from so many pages on, a colon, the price.",
        example="6:0.12,21:0.30,51:0.60",
    )
    page_cost: str = setting(
        "", "US dollars that a page costs you; empty: 0.004, as OCR 4 does.", example="0.004"
    )
    max_pages: int = setting(100, "Pages of the longest PDF that is taken.")
    extensions: tuple[str, ...] = setting(
        (".pdf", *_PICTURES),
        "Endings of the files that are taken, also .docx and .pptx. Pages of a .docx are not "
        "counted: one of any length has the lowest price.",
        example=".pdf,.png,.jpg",
    )
    max_concurrency: int = setting(4, "Documents read at once; 0: no limit.")


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register(PARSER.name, MistralSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the model on sale if there is a key."""
    section = settings.section(PARSER.name, MistralSettings)
    if not (key := str(section.api_key)):
        return
    address = base_url(section.base_url, name="mistral_base_url")
    cost = page_cost_micros(PARSER, section.page_cost)
    reader = Reader(
        Outbound(address, headers={"Authorization": f"Bearer {key}"}),
        page_cost_micros=cost,
        traits=Traits(
            max_concurrency=limit_or_none(section.max_concurrency, name="mistral_max_concurrency")
        ),
    )
    override = settings.endpoints.get(PARSER.slug)
    model = override.model if override is not None and override.model else section.model
    endpoint = document_endpoint(
        PARSER,
        section,
        model=section.model,
        page_cost_micros=_usual_page_cost(model) if cost is None else cost,
        checked=CHECKED if cost is None else None,
    )
    register(endpoint, reader)


def _usual_page_cost(model: str) -> int | None:
    """Return the 10⁻⁶ US dollars that a page of a model costs; None for a model not known."""
    return next((cost for name, cost in _PAGE_COSTS.items() if model.startswith(name)), None)


@attrs.frozen
class _Page:
    markdown: str


@attrs.frozen
class _Reading:
    pages: list[_Page]
    usage_info: Any = None


@attrs.define
class Reader:
    """Submits by `POST {base}/ocr`."""

    outbound: Outbound
    page_cost_micros: int | None = attrs.field(kw_only=True)
    traits: Traits = attrs.field(kw_only=True)
    timeout_s: float = _TIMEOUT_S
    name: str = PARSER.name

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Ask for the text of one document; an empty page has an empty text.

        Raises `SubmitUncertain` if Mistral read and billed it and the text cannot be reached.
        """
        order = await _request_body(request, job.endpoint)
        answer = await self.outbound.request("POST", "/ocr", json=order, timeout_s=self.timeout_s)
        _check(answer)
        reading = await read_json(answer, _Reading)
        if reading is None or not reading.pages:
            raise SubmitUncertain("Answered with success, but without a page.")
        markdown = "\n\n".join(page.markdown for page in reading.pages)
        cost = self._cost_micros(reading.usage_info)
        return Result(text=markdown, cost_micros=cost, is_cost_told=False)

    def _cost_micros(self, usage: object) -> int | None:
        pages = as_number(as_object(usage).get("pages_processed"))
        if self.page_cost_micros is None or pages is None:
            return None
        return int(pages) * self.page_cost_micros

    async def health(self) -> None:
        """Check the key by asking for the list of models, which is free."""
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
        # Every paragraph again with its place: several times the text, and never sold.
        order["include_blocks"] = False
    if attachment.extension == ".pdf":
        # Ask for the paid pages only, whatever the file claims.
        order["pages"] = f"0-{(request.pages or endpoint.max_pages or 1) - 1}"
    elif attachment.extension not in _PICTURES:
        # Mistral returns the pictures of Office files in Base64 unless the limit is 0.
        order["image_limit"] = 0
    return order


async def _document(attachment: Attachment) -> dict[str, str]:
    kind = "image_url" if attachment.extension in _PICTURES else "document_url"
    data = f"data:{media_type(attachment)};base64,{await base64_text(attachment)}"
    return {"type": kind, kind: data}


def _check(answer: Answer) -> None:
    """Raise the error that an answer stands for; do nothing for one that should hold pages."""
    if answer.status in range(200, 300):
        return
    error = json_object(answer)
    kind = as_text(error.get("type"))
    if kind == "invalid_model" or "model" in blamed_fields(error):
        raise AccountProblem(
            "The provider does not know the model: change the settings.", scope="model"
        )
    if kind == "document_parser_too_many_pages":
        raise InvalidInput("The document has more pages than the provider takes.")
    answer.check()
