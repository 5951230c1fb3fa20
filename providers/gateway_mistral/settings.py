"""The operator's settings: key, model and prices of reading and extraction."""

import attrs
import typed_settings as ts

from gateway import secret, setting
from gateway.domain import DOCUMENT_EXTRACTION
from gateway.vendors import DocumentParser

# Timeout of one request, to which Mistral responds after the last page.
TIMEOUT_S = 240.0
PICTURES = (".png", ".jpg", ".jpeg", ".avif")
# Cost of one page in 10⁻⁶ US dollars by model prefix, and when it was last compared with the
# vendor's prices. docs.mistral.ai/models/ocr-4-1.md (a stored copy, read 2026-11): 4 US dollars for
# 1,000 pages and 5 for 1,000 annotated pages. The meaning of `latest` may change; now it is OCR
# 4.1.
PAGE_COSTS = {"mistral-ocr-4": 4_000, "mistral-ocr-latest": 4_000}
EXTRACT_PAGE_COSTS = {"mistral-ocr-4": 5_000, "mistral-ocr-latest": 5_000}
CHECKED = "2026-11-23"
# The first day on which Mistral no longer serves a model (docs.mistral.ai).
RETIRES = {"mistral-ocr-4-0": "2026-09-30"}
PARSER = DocumentParser(
    name="mistral",
    slug="mistral-ocr",
    title="Document to Markdown by Mistral OCR",
    description="Reads scanned and digital PDFs and pictures of text into Markdown.",
    extensions=(".pdf", ".docx", ".pptx", *PICTURES),
    timeout_s=TIMEOUT_S + 20.0,
)
EXTRACTOR = DocumentParser(
    name="mistral",
    slug="mistral-extract",
    title="Data of a document by Mistral OCR",
    description=(
        "Reads PDFs, scans and pictures of text, and answers a question or fills a JSON Schema."
    ),
    extensions=PARSER.extensions,
    timeout_s=TIMEOUT_S + 20.0,
    capability=DOCUMENT_EXTRACTION,
    settings_prefix="extract_",
)


@attrs.frozen(kw_only=True)
class MistralSettings:
    """The operator's settings."""

    api_key: ts.SecretStr = secret(
        "API key of Mistral. It puts `mistral-ocr` and `mistral-extract` on sale.",
        on_page=True,
    )
    base_url: str = setting(
        "https://api.mistral.ai/v1",
        "Address of the API.",
        # Some operators put a key into the path.
        shown=False,
    )
    model: str = setting(
        "mistral-ocr-4-1",
        "Model that reads the documents. `mistral-ocr-latest` changes in meaning and cost.",
        on_page=True,
    )
    price: str = setting("0.03", "USDC of a document of up to 5 pages.", on_page=True)
    page_prices: tuple[str, ...] = setting(
        ("6:0.12", "21:0.30", "51:0.60"),
        "USDC of longer documents: `pages:price` from that many pages on.",
        example="6:0.12,21:0.30,51:0.60",
        on_page=True,
    )
    page_cost: str = setting(
        "",
        "Your cost of a page in US dollars; empty: 0.004, as for OCR 4.",
        example="0.004",
        on_page=True,
    )
    max_pages: int = setting(100, "Maximum pages of a PDF.", on_page=True)
    # The prices cover billing at both rates, 9 US dollars for 1,000 pages, in case that happens.
    extract_price: str = setting(
        "0.04",
        "USDC for data from a document of up to 3 pages (`mistral-extract`).",
        on_page=True,
    )
    extract_page_prices: tuple[str, ...] = setting(
        ("4:0.10",),
        "The same for data from longer documents.",
        example="4:0.10,9:0.60",
        on_page=True,
    )
    extract_page_cost: str = setting(
        "",
        "Your cost of extracting a page in US dollars; empty: 0.005, as for OCR 4.",
        example="0.005",
        on_page=True,
    )
    # The limit in Mistral's documentation of annotations (from third parties, 2026).
    extract_max_pages: int = setting(8, "Maximum pages of a PDF for data extraction.", on_page=True)
    extensions: tuple[str, ...] = setting(
        (".pdf", *PICTURES),
        "Accepted extensions; also possible: .docx, whose pages are not counted (lowest price), "
        "and .pptx.",
        example=".pdf,.png,.jpg",
        on_page=True,
    )
    max_concurrency: int = setting(4, "Documents read concurrently; 0: no limit.", on_page=True)

    def of_extraction(self) -> "MistralSettings":
        """Return the settings with the prices and page limit of extraction."""
        return attrs.evolve(
            self,
            price=self.extract_price,
            page_prices=self.extract_page_prices,
            page_cost=self.extract_page_cost,
            max_pages=self.extract_max_pages,
        )
