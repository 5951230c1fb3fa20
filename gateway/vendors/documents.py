"""The documents that an adapter parses: prices by pages, the buyer's file, the vendor's answers.

An adapter's settings have the fields of `DocumentSettings`, each with the adapter's own default.
The operator writes, for example, `GATEWAY_ACME_PRICE=0.02` and
`GATEWAY_ACME_PAGE_PRICES=6:0.06,21:0.15`: 0.06 USDC from the 6th page on, 0.15 from the 21st.
`gateway.sandbox.pages` counts the pages of PDF, .pptx and TIFF files. Pages of any other file are
not counted, and it has the lowest price. So a vendor that bills pages sells such endings only if
the operator names them.
"""

import asyncio
import base64
import re
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import attrs
import msgspec

from gateway.domain import Attachment, Endpoint, GenerationRequest, PriceStep, usdc
from gateway.domain.extraction import read_schema
from gateway.domain.offers import DOCUMENT_EXTRACTION, DOCUMENT_PARSING
from gateway.errors import HandleLost, InvalidInput, SettingsError
from gateway.settings.sections import variable
from gateway.vendors.answer import Answer

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
        """USDC of longer documents, each as `pages:price`: the price from that many pages on."""
        ...

    @property
    def max_pages(self) -> int:
        """Pages of the longest document that is sold."""
        ...

    @property
    def extensions(self) -> tuple[str, ...]:
        """Endings of the file names that are sold, with or without the dot."""
        ...


@attrs.frozen(kw_only=True)
class DocumentParser:
    """What the author of an adapter says about what it does with documents."""

    name: str
    """The provider's name, which is also the prefix of its settings."""
    slug: str
    """The endpoint's name in the address: `/api/x402/<slug>`."""
    title: str
    description: str
    extensions: tuple[str, ...]
    """Endings that the vendor documents, in lower case with the dot, such as ".pdf"."""
    timeout_s: float
    """Seconds of one attempt."""
    capability: str = DOCUMENT_PARSING
    """`document-extraction` for an endpoint that also takes a prompt, and returns JSON."""
    settings_prefix: str = ""
    """What stands between the provider's name and that of a setting, such as `extract_` in
    `GATEWAY_ACME_EXTRACT_PRICE`."""

    def setting(self, name: str) -> str:
        """Return the whole name of one of its settings, such as `acme_extract_price`."""
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
    """Return the endpoint that sells what a parser does; `model` is the vendor's name of it.

    `page_cost_micros` is what a page costs the operator, in 10⁻⁶ US dollars. `checked` is the day
    on which it was last compared with the vendor's prices, where it is of the adapter's own table.
    `retires` is the first day on which the vendor no longer serves the model, if it is known.
    Raises `SettingsError` for a price, an ending or a number of pages that cannot be right.
    """
    if section.max_pages < 1:
        raise _settings_error(parser.setting("max_pages"), "is not right: 1 or more", "100")
    prompt = ("prompt",) if parser.capability == DOCUMENT_EXTRACTION else ()
    return Endpoint(
        slug=parser.slug,
        title=parser.title,
        description=parser.description,
        model=model,
        provider=parser.name,
        capability=parser.capability,
        price_units=_price_units(parser.setting("price"), section.price, example="0.02"),
        price_steps=_price_steps(parser.setting("page_prices"), section),
        page_cost_micros=page_cost_micros,
        cost_checked=checked if page_cost_micros is not None else None,
        retires=retires,
        required_fields=(*prompt, "fileBase64", "fileName"),
        file_extensions=_chosen_extensions(parser, section.extensions),
        max_pages=section.max_pages,
        timeout_s=parser.timeout_s,
    )


def page_cost_micros(parser: DocumentParser, page_cost: str) -> int | None:
    """Return what one page costs the operator, in 10⁻⁶ US dollars; None for an empty setting.

    `page_cost` is the operator's setting in US dollars, such as "0.004". Raises `SettingsError` for
    a text that is not an amount.
    """
    if not page_cost:
        return None
    return _price_units(parser.setting("page_cost"), page_cost, example="0.002")


def attached_file(request: GenerationRequest) -> Attachment:
    """Return the file of a request; raises `InvalidInput` if it has none.

    Every request of a `document_endpoint` has one.
    """
    if request.attachment is None:
        raise InvalidInput("A file is needed.")
    return request.attachment


def paid_pages(request: GenerationRequest, endpoint: Endpoint) -> int:
    """Return the most pages that the vendor may be asked to read, whatever the file claims.

    These are the pages that the price counts. Of a file whose pages are not counted, it is the
    longest document that the endpoint sells.
    """
    return request.pages or endpoint.max_pages or 1


def schema_of(request: GenerationRequest) -> dict[str, Any] | None:
    """Return the JSON Schema that a buyer asks a document with; None for a question in words.

    The gateway has checked it before the payment. Raises `InvalidInput` for a broken one.
    """
    try:
        return read_schema(request.prompt)
    except ValueError as error:
        raise InvalidInput(str(error)) from None


def answer_schema() -> dict[str, Any]:
    """Return the schema that asks for an answer in words, for vendors that take schemas only."""
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
    """Return the media type for the ending of a file's name; `application/octet-stream` if none."""
    return _MEDIA_TYPES.get(attachment.extension, "application/octet-stream")


async def base64_text(attachment: Attachment) -> str:
    """Return a file as Base64; a thread encodes it, because a file may have 7.5 MB."""
    return await asyncio.to_thread(lambda: base64.b64encode(attachment.data).decode("ascii"))


async def read_json(answer: Answer, kind: type[Kind]) -> Kind | None:
    """Return the JSON of an answer as an attrs class; None if the body does not fit the class.

    Fields that the class lacks are skipped without being built, so the body may be much larger
    than what is read of it. A thread reads a body of 100,000 bytes or more.
    """
    if len(answer.body) < _LOOP_BYTES:
        return _decode(answer.body, kind)
    return await asyncio.to_thread(_decode, answer.body, kind)


def check_job(answer: Answer) -> None:
    """Raise the error that the status of a poll stands for; do nothing for a 2xx.

    404 and 410 raise `HandleLost`, which ends the job; every other status what
    `Answer.check_poll` raises.
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
    """Return the prices by length, sorted: the last step that applies is the price."""
    steps = []
    for entry in section.page_prices:
        pages, colon, price = (part.strip() for part in entry.partition(":"))
        if not colon or not _PAGES.fullmatch(pages):
            raise _settings_error(
                name,
                f"is not right: {entry!r} is no number of pages, a colon, and the USDC from there",
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
