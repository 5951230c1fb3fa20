"""The operator's settings: key, address, tier and prices."""

import attrs
import typed_settings as ts

from gateway import SettingsError, secret, setting
from gateway.vendors import DocumentParser

# The tier `fast` is left out, because it makes no Markdown.
_TIERS = ("cost_effective", "agentic", "agentic_plus")
# Files whose pages the gateway counts, or that have one page.
_PAGED = (".pdf", ".pptx", ".tiff", ".png", ".jpg", ".jpeg", ".webp", ".bmp")
_OFFICE = (".docx", ".doc", ".ppt", ".xlsx", ".xls", ".rtf", ".txt", ".epub", ".html")
PARSER = DocumentParser(
    name="llamaparse",
    slug="llamaparse",
    title="Document to Markdown by LlamaParse",
    description="Reads PDFs and scans into Markdown, with their tables and layout.",
    extensions=(*_PAGED, *_OFFICE),
    # A hundred pages take this long, the vendor's queue included.
    timeout_s=900.0,
)


@attrs.frozen(kw_only=True)
class LlamaParseSettings:
    """The operator's settings."""

    api_key: ts.SecretStr = secret("API key of LlamaCloud. It puts `llamaparse` on sale.")
    base_url: str = setting(
        "https://api.cloud.llamaindex.ai",
        "Address of the API; that of the region your key is of.",
        example="https://api.cloud.eu.llamaindex.ai",
        # Some operators put a key into the path.
        shown=False,
    )
    tier: str = setting(
        "cost_effective",
        "How it is parsed, which decides what it costs you: `cost_effective`, `agentic` or "
        "`agentic_plus`.",
    )
    version: str = setting("latest", "Version of the tier; a date stays what it is.")
    price: str = setting("0.03", "USDC of a document of up to 5 pages.")
    page_prices: tuple[str, ...] = setting(
        ("6:0.12", "21:0.30", "51:0.60"),
        "USDC of longer documents: from so many pages on, a colon, the price.",
        example="6:0.12,21:0.30,51:0.60",
    )
    page_cost: str = setting(
        "", "US dollars that a page costs you, for your books; empty: not known.", example="0.004"
    )
    max_pages: int = setting(
        100, "Pages of the longest file that is taken; one not counted is read up to there."
    )
    extensions: tuple[str, ...] = setting(
        _PAGED,
        "Endings of the files that are taken, also those of other Office files. Their pages are "
        "not counted: one of any length has the lowest price.",
        example=".pdf,.docx",
    )
    max_concurrency: int = setting(8, "Jobs at once; 0: no limit.")


def tier(section: LlamaParseSettings) -> str:
    """Return the tier; raises `SettingsError` for one that makes no Markdown."""
    if section.tier not in _TIERS:
        raise SettingsError(
            f"GATEWAY_LLAMAPARSE_TIER is not right: one of {', '.join(_TIERS)}. "
            "Example: GATEWAY_LLAMAPARSE_TIER=agentic"
        )
    return section.tier
