"""Document parsing adapters: page prices, the buyer's file, and the vendor's responses.

An adapter's settings have the fields of `DocumentSettings`, each with the adapter's own default.
For example, `GATEWAY_ACME_PRICE=0.02` and `GATEWAY_ACME_PAGE_PRICES=6:0.06,21:0.15` mean 0.06 USDC
from the 6th page on, 0.15 from the 21st. `gateway.sandbox.pages` counts the pages of PDF, .pptx and
TIFF files. Other files have the lowest price, because their pages are not counted. So the adapter
of a vendor that bills pages sells such file types only if the operator lists them.
"""

import asyncio
import base64
import re
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import attrs
import msgspec

from gateway.domain import (
    DOCUMENT_PARSING,
    Attachment,
    Endpoint,
    GenerationRequest,
    PriceStep,
    usdc,
)
from gateway.domain.capabilities import declaration_of
from gateway.domain.extraction import read_schema
from gateway.errors import HandleLost, InvalidInput, SettingsError
from gateway.settings.sections import variable
from gateway_vendors.answer import Answer

Kind = TypeVar("Kind")
_LOST = (404, 410)
_PAGES = re.compile("[1-9][0-9]{0,5}")
# JSON of this size is decoded in a millisecond. A longer body is decoded in a thread.
_LOOP_BYTES = 100_000
_MEDIA_TYPES = {
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".avif": "image/avif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".heif": "image/heif",
    ".html": "text/html",
    ".htm": "text/html",
    ".csv": "text/csv",
    ".txt": "text/plain",
    ".md": "text/markdown",
}


class DocumentSettings(Protocol):
    """The settings that every document parser has."""

    @property
    def price(self) -> str:
        """USDC of a short document."""
        ...

    @property
    def page_prices(self) -> tuple[str, ...]:
        """USDC of longer documents, as `pages:price`: the price from that many pages on."""
        ...

    @property
    def max_pages(self) -> int:
        """The maximum number of pages of a document."""
        ...

    @property
    def extensions(self) -> tuple[str, ...]:
        """The file extensions on sale, with or without the dot."""
        ...


@attrs.frozen(kw_only=True)
class DocumentParser:
    """An adapter's description of its document endpoint."""

    name: str
    """The provider's name, which is also the prefix of its settings."""
    slug: str
    """The endpoint's name in the URL: `/api/x402/<slug>`."""
    title: str
    description: str
    extensions: tuple[str, ...]
    """The extensions that the vendor documents, in lower case with the dot, such as ".pdf"."""
    timeout_s: float
    """Seconds of one attempt."""
    capability: str = DOCUMENT_PARSING
    """`document-extraction` for an endpoint that also takes a prompt, and returns JSON."""
    settings_prefix: str = ""
    """Text between the provider's name and the setting's, such as `extract_` in
    `GATEWAY_ACME_EXTRACT_PRICE`."""

    def setting(self, name: str) -> str:
        """Return the full name of a setting, such as `acme_extract_price`."""
        return f"{self.name}_{self.settings_prefix}{name}"


def document_endpoint(
    parser: DocumentParser,
    section: DocumentSettings,
    *,
    model: str,
    page_cost_micros: int | None = None,
    checked: str | None = None,
    retires: str | None = None,
) -> Endpoint:
    """Return the endpoint of a document parser; `model` is the vendor's name for it.

    `page_cost_micros` is the operator's cost of a page, in 10⁻⁶ US dollars. `checked` is the day on
    which that cost was last compared with the vendor's prices, if it comes from the adapter's
    table. `retires` is the first day on which the vendor no longer serves the model, if known.

    Raises `SettingsError` for an invalid price, extension or number of pages.
    """
    if section.max_pages < 1:
        raise _settings_error(parser.setting("max_pages"), "is not right: 1 or more", "100")
    is_prompted = declaration_of(parser.capability).prompt.use == "required"
    prompt = ("prompt",) if is_prompted else ()
    return Endpoint(
        slug=parser.slug,
        title=parser.title,
        description=parser.description,
        model=model,
        provider=parser.name,
        capability=parser.capability,
        price_units=_price_units(parser.setting("price"), section.price, example="0.02"),
        price_steps=_price_steps(parser.setting("page_prices"), section),
        cost_micros=0 if page_cost_micros == 0 else None,
        page_cost_micros=page_cost_micros,
        cost_checked=checked if page_cost_micros is not None else None,
        retires=retires,
        required_fields=(*prompt, "fileBase64", "fileName"),
        file_extensions=_chosen_extensions(parser, section.extensions),
        max_pages=section.max_pages,
        timeout_s=parser.timeout_s,
    )


def page_cost_micros(parser: DocumentParser, page_cost: str) -> int | None:
    """Return the operator's cost of a page, in 10⁻⁶ US dollars; None for an empty setting.

    `page_cost` is the setting in US dollars, such as "0.004". Raises `SettingsError` if it is not
    an amount.
    """
    if not page_cost:
        return None
    return _price_units(parser.setting("page_cost"), page_cost, example="0.002")


def attached_file(request: GenerationRequest) -> Attachment:
    """Return the file of a request. Raises `InvalidInput` if it has none.

    Requests of a `document_endpoint` always have one.
    """
    if request.attachment is None:
        raise InvalidInput("A file is needed.")
    return request.attachment


def paid_pages(request: GenerationRequest, endpoint: Endpoint) -> int:
    """Return the number of pages that the vendor may read at most, whatever the file claims.

    This is the number that the price is based on or, if pages are not counted, the endpoint's
    maximum.
    """
    return request.pages or endpoint.max_pages or 1


def schema_of(request: GenerationRequest) -> dict[str, Any] | None:
    """Return the JSON Schema in a buyer's prompt; None for a question in words.

    The gateway validated it before the payment. Raises `InvalidInput` if it is broken.
    """
    try:
        return read_schema(request.prompt)
    except ValueError as error:
        raise InvalidInput(str(error)) from None


def answer_schema() -> dict[str, Any]:
    """Return the schema for a question in words, for vendors that require a schema."""
    return {
        "type": "object",
        "properties": {
            "answer": {
                "type": "string",
                "description": "The answer to the question; empty if the document has none.",
            },
            "found": {"type": "boolean", "description": "Whether the document has an answer."},
            "quotes": {
                "type": "array",
                "items": {"type": "string"},
                "description": "What the document says about it, word for word.",
            },
        },
        "required": ["answer", "found", "quotes"],
        "additionalProperties": False,
    }


def media_type(attachment: Attachment) -> str:
    """Return the media type for the file's extension, or `application/octet-stream`."""
    return _MEDIA_TYPES.get(attachment.extension, "application/octet-stream")


async def base64_text(attachment: Attachment) -> str:
    """Encode a file as Base64 in a thread, because a file may have 7.5 MB."""
    return await asyncio.to_thread(lambda: base64.b64encode(attachment.data).decode("ascii"))


async def read_json(answer: Answer, kind: type[Kind]) -> Kind | None:
    """Parse the response's JSON into an attrs class. None if the body does not fit the class.

    Fields that the class lacks are skipped cheaply, so the body may be much larger than the result.
    Runs in a thread for a body of 100,000 bytes or more.
    """
    if len(answer.body) < _LOOP_BYTES:
        return _decode(answer.body, kind)
    return await asyncio.to_thread(_decode, answer.body, kind)


def check_job(answer: Answer) -> None:
    """Raise the error that a poll's status means; return for a 2xx.

    404 and 410 raise `HandleLost`, which ends the job; others raise as `Answer.check_poll` does.
    """
    if answer.status in _LOST:
        raise HandleLost(f"The provider does not know the job any more: {answer.status}.")
    answer.check_poll()


def _decode(body: bytes, kind: type[Kind]) -> Kind | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _price_steps(name: str, section: DocumentSettings) -> tuple[PriceStep, ...]:
    """Return steps by length: the last one that applies is the price."""
    steps = []
    for entry in section.page_prices:
        pages, colon, price = (part.strip() for part in entry.partition(":"))
        if not colon or not _PAGES.fullmatch(pages):
            raise _settings_error(
                name,
                f"is not right: {entry!r} is not pages:price",
                "6:0.06,21:0.15",
            )
        units = _price_units(name, price, example="6:0.06,21:0.15")
        steps.append(PriceStep(price_units=units, min_pages=int(pages)))
    return tuple(sorted(steps, key=lambda step: step.min_pages or 0))


def _price_units(name: str, amount: str, *, example: str) -> int:
    try:
        return usdc(amount)
    except ValueError as error:
        raise _settings_error(name, f"is not right: {error}", example) from None


def _chosen_extensions(parser: DocumentParser, chosen: Sequence[str]) -> tuple[str, ...]:
    endings = tuple(dict.fromkeys(f".{ending.strip().lower().lstrip('.')}" for ending in chosen))
    if not endings or not set(endings) <= set(parser.extensions):
        raise _settings_error(
            f"{parser.name}_extensions",
            f"is not right: one or more of {', '.join(parser.extensions)}",
            ",".join(parser.extensions[:2]),
        )
    return endings


def _settings_error(name: str, state: str, example: str) -> SettingsError:
    return SettingsError(f"{variable(name)} {state}. Example: {variable(name)}={example}")
