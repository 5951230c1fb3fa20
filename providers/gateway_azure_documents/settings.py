"""The operator's settings: endpoint, key, model and prices."""

import attrs
import typed_settings as ts

from gateway import SettingsError, secret, setting
from gateway.vendors import DocumentParser

_PAGED = (".pdf", ".pptx", ".tif", ".tiff", ".png", ".jpg", ".jpeg", ".bmp", ".heif")
_OTHERS = (".docx", ".xlsx", ".html")
# Cost of one page by model, in 10⁻⁶ US dollars, and when it was last compared with the vendor's
# prices.
PAGE_COSTS = {"prebuilt-layout": 10_000, "prebuilt-read": 1_500}
CHECKED = "2026-11-22"
PARSER = DocumentParser(
    name="azure_documents",
    slug="azure-documents",
    title="Document to Markdown by Azure Document Intelligence",
    description="Reads PDFs and scans into Markdown, with their tables and layout.",
    extensions=(*_PAGED, *_OTHERS),
    timeout_s=600.0,
)


@attrs.frozen(kw_only=True)
class AzureDocumentsSettings:
    """The operator's settings."""

    endpoint: str = setting(
        "",
        "Endpoint of your Document Intelligence resource; with the key, it puts `azure-documents` "
        "on sale.",
        example="https://your-name.cognitiveservices.azure.com",
        switches_on=True,
    )
    key: ts.SecretStr = secret("One of the resource's two keys.", switches_on=True, on_page=True)
    model: str = setting("prebuilt-layout", "Model that reads the documents.", on_page=True)
    price: str = setting("0.08", "USDC of a document of up to 5 pages.", on_page=True)
    page_prices: tuple[str, ...] = setting(
        ("6:0.30", "21:0.75", "51:1.50"),
        "USDC of longer documents: `pages:price` from that many pages on.",
        example="6:0.30,21:0.75,51:1.50",
        on_page=True,
    )
    page_cost: str = setting(
        "",
        "Your cost of a page in US dollars; empty: 0.01, as for `prebuilt-layout`.",
        example="0.01",
        on_page=True,
    )
    max_pages: int = setting(100, "Maximum pages of a file; the free tier reads 2.", on_page=True)
    extensions: tuple[str, ...] = setting(
        _PAGED,
        "Accepted extensions; also possible: .docx, .xlsx and .html, whose pages are not counted "
        "(lowest price).",
        example=".pdf,.docx",
        on_page=True,
    )
    max_concurrency: int = setting(8, "Concurrent jobs; 0: no limit.", on_page=True)


def is_on_sale(section: AzureDocumentsSettings) -> bool:
    """Whether endpoint and key are both set; raises `SettingsError` if only one is."""
    key = str(section.key)
    if bool(section.endpoint) != bool(key):
        missing = "ENDPOINT" if key else "KEY"
        raise SettingsError(
            f"GATEWAY_AZURE_DOCUMENTS_{missing} is missing: an endpoint and its key belong "
            "together. Example: "
            "GATEWAY_AZURE_DOCUMENTS_ENDPOINT=https://your-name.cognitiveservices.azure.com"
        )
    return bool(key)
