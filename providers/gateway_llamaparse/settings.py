"""The operator's settings: key, URL, tiers and prices of parsing and extraction."""

from collections.abc import Mapping

import attrs
import typed_settings as ts

from gateway import SettingsError, secret, setting
from gateway.domain import DOCUMENT_EXTRACTION
from gateway.vendors import DocumentParser


@attrs.frozen
class TierPrices:
    """The buyer's default prices in a tier."""

    price: str
    page_prices: tuple[str, ...]
    page_cost_micros: int
    """The operator's cost of a page, in 10⁻⁶ US dollars."""


# When these costs were last checked.
CHECKED = "2026-11-22"
# LlamaIndex's glossary (read 2026-11) bills 3, 10 and 45 credits a page; 1,000 credits cost 1.25 US
# dollars. Each price step is about 1.5 times the cost of its longest document. The tier `fast` is
# omitted, because it produces no Markdown.
TIERS: Mapping[str, TierPrices] = {
    "cost_effective": TierPrices("0.03", ("6:0.12", "21:0.30", "51:0.60"), 3_750),
    "agentic": TierPrices("0.10", ("6:0.38", "21:0.95", "51:1.90"), 12_500),
    "agentic_plus": TierPrices("0.45", ("6:1.70", "21:4.25", "51:8.50"), 56_250),
}
# llama-cloud 2.19.0 (its types, read 2026-11) bills 5, 15 and 50 credits a page, in addition to
# those of parsing (a third-party price list, 2026-06). The tier `turbo` is omitted: it costs 35 and
# parses nothing.
EXTRACT_TIERS: Mapping[str, TierPrices] = {
    "cost_effective": TierPrices("0.08", ("6:0.30", "21:0.75", "51:1.50"), 10_000),
    "agentic": TierPrices("0.25", ("6:0.95", "21:2.40", "51:4.70"), 31_250),
    "agentic_plus": TierPrices("0.90", ("6:3.60", "21:9.00", "51:17.80"), 118_750),
}
# Files whose pages the gateway counts, or that have one page.
_PAGED = (".pdf", ".pptx", ".tiff", ".png", ".jpg", ".jpeg", ".webp", ".bmp")
_OFFICE = (".docx", ".doc", ".ppt", ".xlsx", ".xls", ".rtf", ".txt", ".epub", ".html")
PARSER = DocumentParser(
    name="llamaparse",
    slug="llamaparse",
    title="Document to Markdown by LlamaParse",
    description="Reads PDFs and scans into Markdown, with their tables and layout.",
    extensions=(*_PAGED, *_OFFICE),
    # A hundred pages take this long, including the vendor's queue.
    timeout_s=900.0,
)

EXTRACTOR = DocumentParser(
    name="llamaparse",
    slug="llama-extract",
    title="Data of a document by LlamaExtract",
    description="Reads PDFs and scans, and answers a question or fills a JSON Schema.",
    extensions=PARSER.extensions,
    timeout_s=PARSER.timeout_s,
    capability=DOCUMENT_EXTRACTION,
    settings_prefix="extract_",
)


@attrs.frozen(kw_only=True)
class LlamaParseSettings:
    """The operator's settings."""

    api_key: ts.SecretStr = secret(
        "API key of LlamaCloud. It puts `llamaparse` and `llama-extract` on sale.",
        on_page=True,
    )
    base_url: str = setting(
        "https://api.cloud.llamaindex.ai",
        "Address of the API in the region of your key.",
        example="https://api.cloud.eu.llamaindex.ai",
        # Some operators put a key into the path.
        shown=False,
    )
    tier: str = setting(
        "cost_effective",
        "Parsing tier, which determines your cost: `cost_effective`, `agentic` or `agentic_plus`.",
        on_page=True,
    )
    version: str = setting("latest", "Version of the tier; a date pins it.", on_page=True)
    price: str = setting(
        "",
        "USDC of a document of up to 5 pages; empty: 0.03, `agentic` 0.10, `agentic_plus` 0.45.",
        example="0.03",
        on_page=True,
    )
    page_prices: tuple[str, ...] = setting(
        (),
        "USDC of longer documents: `pages:price` from that many pages on. Empty: as in the "
        "example; `agentic`: 6:0.38, 21:0.95, 51:1.90; `agentic_plus`: 6:1.70, 21:4.25, 51:8.50.",
        example="6:0.12,21:0.30,51:0.60",
        on_page=True,
    )
    page_cost: str = setting(
        "",
        "Your cost of a page in US dollars; empty: 0.00375, 0.0125 or 0.05625, by the tier.",
        example="0.004",
        on_page=True,
    )
    extract_tier: str = setting(
        "cost_effective",
        "Extraction tier (`llama-extract`), with the same values as `tier`.",
        on_page=True,
    )
    extract_price: str = setting(
        "",
        "USDC for data from a document of up to 5 pages; empty: 0.08, `agentic` 0.25, "
        "`agentic_plus` 0.90.",
        example="0.08",
        on_page=True,
    )
    extract_page_prices: tuple[str, ...] = setting(
        (),
        "The same for data from longer documents. Empty: as in the example; `agentic`: 6:0.95, "
        "21:2.40, 51:4.70; `agentic_plus`: 6:3.60, 21:9.00, 51:17.80.",
        example="6:0.30,21:0.75,51:1.50",
        on_page=True,
    )
    extract_page_cost: str = setting(
        "",
        "Your cost of extracting a page in US dollars, including parsing; empty: "
        "0.01, 0.03125 or 0.11875, by the tier.",
        example="0.01",
        on_page=True,
    )
    max_pages: int = setting(
        100,
        "Maximum pages of a file; uncounted files are read up to this page.",
        on_page=True,
    )
    extensions: tuple[str, ...] = setting(
        _PAGED,
        "Accepted extensions; also possible: other Office files, whose pages are not counted "
        "(lowest price).",
        example=".pdf,.docx",
        on_page=True,
    )
    max_concurrency: int = setting(8, "Concurrent jobs; 0: no limit.", on_page=True)


def of_extraction(section: LlamaParseSettings) -> LlamaParseSettings:
    """Return the settings with the tier, prices and cost of extraction."""
    return attrs.evolve(
        section,
        tier=section.extract_tier,
        price=section.extract_price,
        page_prices=section.extract_page_prices,
        page_cost=section.extract_page_cost,
    )


def with_prices(
    section: LlamaParseSettings,
    tier: str,
    *,
    parser: DocumentParser = PARSER,
    tiers: Mapping[str, TierPrices] = TIERS,
) -> LlamaParseSettings:
    """Return the settings with a tier's default prices filled in.

    Raises `SettingsError` for a tier that is not sold.
    """
    if tier not in tiers:
        variable = f"GATEWAY_{parser.setting('tier')}".upper()
        raise SettingsError(
            f"{variable} is not right: one of {', '.join(tiers)}. Example: {variable}=agentic"
        )
    prices = tiers[tier]
    return attrs.evolve(
        section,
        price=section.price or prices.price,
        page_prices=section.page_prices or prices.page_prices,
    )
