"""The operator's settings: key, model and prices of reading and of extraction."""

import attrs
import typed_settings as ts

from gateway import secret, setting
from gateway.domain import DOCUMENT_EXTRACTION
from gateway.vendors import DocumentParser

# The time-out of one request, which Mistral answers after the last page.
TIMEOUT_S = 240.0
PICTURES = (".png", ".jpg", ".jpeg", ".avif")
# 10⁻⁶ US dollars of one page by the beginning of the model's name, and when that was last compared
# with the vendor's prices. docs.mistral.ai/models/ocr-4-1.md (a stored copy, read 2026-11) says 4
# US dollars for 1,000 pages and 5 for 1,000 annotated pages. What `latest` means may change; now it
# is OCR 4.1.
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
        "API key of Mistral. It puts `mistral-ocr` and `mistral-extract` on sale."
    )
    base_url: str = setting(
        "https://api.mistral.ai/v1",
        "Address of the API.",
        # Some operators put a key into the path.
        shown=False,
    )
    model: str = setting(
        "mistral-ocr-4-1",
        "Model that reads the documents. What `mistral-ocr-latest` means, and costs, changes.",
    )
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
    # The prices cover a bill of both rates, 9 US dollars for 1,000 pages, should it come to that.
    extract_price: str = setting(
        "0.04", "USDC of data of a document of up to 3 pages (`mistral-extract`)."
    )
    extract_page_prices: tuple[str, ...] = setting(
        ("4:0.10",),
        "USDC of data of longer documents, as in page_prices.",
        example="4:0.10,9:0.60",
    )
    extract_page_cost: str = setting(
        "",
        "US dollars that a page costs you whose data is extracted; empty: 0.005, as OCR 4 does.",
        example="0.005",
    )
    # Mistral's documentation of annotations allowed so many (read by others, 2026).
    extract_max_pages: int = setting(8, "Pages of the longest PDF of which data is extracted.")
    extensions: tuple[str, ...] = setting(
        (".pdf", *PICTURES),
        "Endings of the files that are taken, also .docx and .pptx. Pages of a .docx are not "
        "counted: one of any length has the lowest price.",
        example=".pdf,.png,.jpg",
    )
    max_concurrency: int = setting(4, "Documents read at once; 0: no limit.")

    def of_extraction(self) -> "MistralSettings":
        """Return the same with the prices and the pages of extraction."""
        return attrs.evolve(
            self,
            price=self.extract_price,
            page_prices=self.extract_page_prices,
            page_cost=self.extract_page_cost,
            max_pages=self.extract_max_pages,
        )
