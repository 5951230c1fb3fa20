"""Document parsers of other people's APIs: their price by pages, their files, their answers.

A provider's section of settings has the fields of `DocumentSettings`, each with defaults of its
own. The operator writes, for example, `GATEWAY_ACME_PRICE=0.02` and
`GATEWAY_ACME_PAGE_PRICES=6:0.06,21:0.15`: 0.06 USDC from the 6th page on, 0.15 from the 21st.
`gateway.sandbox.pages` counts the pages of PDF, .pptx and TIFF files. Any other file has the lowest
price, however long it is: where pages are billed, such endings are sold only if the operator names
them.
"""

import asyncio
import base64
import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

import attrs
import msgspec

from gateway.domain import Attachment, Endpoint, GenerationRequest, PriceStep, usdc
from gateway.domain.offers import DOCUMENT_PARSING
from gateway.errors import HandleLost, InvalidInput, SettingsError
from gateway.settings.sections import variable
from gateway.vendors import Answer

Kind = TypeVar("Kind")
_LOST = (404, 410)
_PAGES = re.compile("[1-9][0-9]{0,5}")
_LOOP_BYTES = 100_000  # of JSON, a millisecond; more is read in a thread
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
    """What an operator may set of every document parser."""

    @property
    def price(self) -> str:
        """USDC of a short document."""
        ...

    @property
    def page_prices(self) -> tuple[str, ...]:
        """USDC of longer ones, as `pages:price`: from so many pages on."""
        ...

    @property
    def max_pages(self) -> int:
        """Of one document."""
        ...

    @property
    def extensions(self) -> tuple[str, ...]:
        """Endings of the file names that are taken."""
        ...


@attrs.frozen(kw_only=True)
class Parser:
    """What the author of a provider says about it."""

    name: str  # the provider's; also the prefix of its settings
    slug: str
    title: str
    description: str
    extensions: tuple[str, ...]  # that the API documents: lower-case with the dot
    timeout_s: float  # of one attempt


def document_endpoint(parser: Parser, section: DocumentSettings, *, model: str) -> Endpoint:
    """Return what is for sale.

    Raises `SettingsError` for a price, an ending, or a number of pages that is not right.
    """
    name = parser.name
    if section.max_pages < 1:
        raise _wrong(f"{name}_max_pages", "is not right: 1 or more", "100")
    return Endpoint(
        slug=parser.slug,
        title=parser.title,
        description=parser.description,
        model=model,
        provider=name,
        capability=DOCUMENT_PARSING,
        price_units=_units(f"{name}_price", section.price, example="0.02"),
        price_steps=_steps(f"{name}_page_prices", section),
        required_fields=("fileBase64", "fileName"),
        file_extensions=_extensions(parser, section.extensions),
        max_pages=section.max_pages,
        timeout_s=parser.timeout_s,
    )


def page_cost_micros(parser: Parser, page_cost: str) -> int | None:
    """Return in 10⁻⁶ US dollars what a page costs the operator, who wrote it in US dollars.

    None where it is empty; raises `SettingsError` where it is no amount.
    """
    if not page_cost:
        return None
    return _units(f"{parser.name}_page_cost", page_cost, example="0.002")


def file_of(request: GenerationRequest) -> Attachment:
    """Return the file of a request, which every request for a document has."""
    if request.attachment is None:
        raise InvalidInput("A file is needed.")
    return request.attachment


def media_type(attachment: Attachment) -> str:
    """Return the media type that a file's name stands for."""
    return _MEDIA_TYPES.get(attachment.extension, "application/octet-stream")


async def base64_of(attachment: Attachment) -> str:
    """Return a file as Base64, made in a thread: it may have 7.5 MB."""
    return await asyncio.to_thread(lambda: base64.b64encode(attachment.data).decode("ascii"))


async def read(answer: Answer, kind: type[Kind]) -> Kind | None:
    """Return the JSON of an answer as an attrs class, or None where it is nothing of the kind.

    Fields that the class does not have are skipped unread, so a body may be far larger than what
    is wanted of it; a large one is read in a thread.
    """
    if len(answer.body) < _LOOP_BYTES:
        return _decoded(answer.body, kind)
    return await asyncio.to_thread(_decoded, answer.body, kind)


def check_poll(answer: Answer) -> None:
    """Raise what the status of an answer about a job stands for; nothing for 2xx.

    No status but "not found" ends a job: the job was taken, so it is asked for again.
    """
    if answer.status in _LOST:
        raise HandleLost(f"The provider does not know the job any more: {answer.status}.")
    answer.check_poll()


def _decoded(body: bytes, kind: type[Kind]) -> Kind | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _steps(name: str, section: DocumentSettings) -> tuple[PriceStep, ...]:
    """Return the prices by length, the longest last: the last that holds is the price."""
    steps = []
    for entry in section.page_prices:
        pages, colon, price = (part.strip() for part in entry.partition(":"))
        if not colon or not _PAGES.fullmatch(pages):
            raise _wrong(
                name,
                f"is not right: {entry!r} is no number of pages, a colon, and the USDC from there",
                "6:0.06,21:0.15",
            )
        units = _units(name, price, example="6:0.06,21:0.15")
        steps.append(PriceStep(price_units=units, min_pages=int(pages)))
    return tuple(sorted(steps, key=lambda step: step.min_pages or 0))


def _units(name: str, amount: str, *, example: str) -> int:
    try:
        return usdc(amount)
    except ValueError as error:
        raise _wrong(name, f"is not right: {error}", example) from None


def _extensions(parser: Parser, chosen: Sequence[str]) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(f".{ending.strip().lower().lstrip('.')}" for ending in chosen))
    if not asked or not set(asked) <= set(parser.extensions):
        raise _wrong(
            f"{parser.name}_extensions",
            f"is not right: one or more of {', '.join(parser.extensions)}",
            ",".join(parser.extensions[:2]),
        )
    return asked


def _wrong(name: str, state: str, example: str) -> SettingsError:
    return SettingsError(f"{variable(name)} {state}. Example: {variable(name)}={example}")
