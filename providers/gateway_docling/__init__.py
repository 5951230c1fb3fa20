"""Documents to Markdown by the operator's own docling-serve, in jobs.

On sale once `GATEWAY_DOCLING_BASE_URL` is set.
"""

from collections.abc import Callable

import attrs
import typed_settings as ts

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl, secret, setting
from gateway.vendors import DocumentParser, base_url, document_endpoint, limit_or_none

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
    """The operator's settings."""

    base_url: str = setting(
        "",
        "Address of your docling-serve. It puts `docling` on sale.",
        example="http://127.0.0.1:5001",
        switches_on=True,
        # Some operators put a key into the path.
        shown=False,
    )
    api_key: ts.SecretStr = secret("Its DOCLING_SERVE_API_KEY, if it has one.", on_page=True)
    price: str = setting("0.02", "USDC of a document of up to 20 pages.", on_page=True)
    page_prices: tuple[str, ...] = setting(
        ("21:0.05", "51:0.10"),
        "USDC of longer documents: `pages:price` from that many pages on.",
        example="21:0.05,51:0.10",
        on_page=True,
    )
    max_pages: int = setting(100, "Maximum pages of a file.", on_page=True)
    extensions: tuple[str, ...] = setting(
        _ENDINGS,
        "Accepted extensions. Pages are counted in PDF, .pptx and TIFF.",
        example=".pdf,.docx",
        on_page=True,
    )
    max_concurrency: int = setting(
        2, "Documents converted concurrently; 0: no limit.", on_page=True
    )


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register(PARSER.name, DoclingSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the converter on sale if a server is set."""
    section = settings.section(PARSER.name, DoclingSettings)
    if not section.base_url:
        return
    from gateway_docling.converter import Converter  # noqa: PLC0415 - only with an address

    key = str(section.api_key)
    converter = Converter(
        Outbound(
            base_url(section.base_url, name="docling_base_url"),
            headers={"X-Api-Key": key} if key else {},
        ),
        traits=Traits(
            max_concurrency=limit_or_none(section.max_concurrency, name="docling_max_concurrency"),
            # The operator's own server bills nothing, so a second submit only costs time.
            idempotent_submit=True,
        ),
    )
    # The operator's own server bills nothing.
    endpoint = document_endpoint(PARSER, section, model="docling", page_cost_micros=0)
    register(endpoint, converter)
