"""The embedded document parser: PDF, Office, HTML, EPUB, CSV and text to Markdown, without a key.

Where the operator has set `sandbox`, it also sells data from documents, found by fixed rules.

`provider` is the provider. `kinds` and `archives` identify a file by its content.
`sandboxes` makes the two sandboxes; one of them reads pictures of text, if the extra `ocr` is
installed. `page_reader` puts that text into its pages. `checked` keeps the results of checks for
the sales that follow. `extractor` has data found in the text.
`child` runs inside the sandboxes and never imports the gateway.
"""

from collections.abc import Callable

import attrs

import gateway
from gateway_documents.child import MAX_PAGES
from gateway_documents.extractor import DocumentExtractor
from gateway_documents.kinds import KINDS, PICTURES
from gateway_documents.provider import DocumentParser

ENDPOINT = gateway.Endpoint(
    slug="document-parser",
    title="Document to Markdown",
    description=(
        "Turns a PDF, Office (.docx .pptx .xlsx .doc .ppt .xls .odt .odp .ods .rtf), HTML, EPUB, "
        "CSV or text file of up to 7.5 MB into Markdown that keeps headings, lists and tables. "
        "Reads text, not pictures of text."
    ),
    model="liteparse+anydoc",
    provider="gateway",
    capability="document-parsing",
    price_units=gateway.usdc("0.01"),
    cost_micros=0,
    required_fields=("fileBase64", "fileName"),
    output_format=gateway.Choice(values=("markdown", "json")),
    file_extensions=(*KINDS, *PICTURES),
    max_pages=MAX_PAGES,
    # A normal file takes 0.4 s and a hostile one 15 s of processor; the rest is for waiting.
    timeout_s=60.0,
)
READING_PICTURES = attrs.evolve(
    ENDPOINT,
    description=(
        "Turns a PDF, Office (.docx .pptx .xlsx .doc .ppt .xls .odt .odp .ods .rtf), HTML, EPUB, "
        "CSV, text or picture file of up to 7.5 MB into Markdown that keeps headings, lists and "
        "tables. Reads scanned pages and pictures of text, up to 50 a file, as plain text."
    ),
    model="liteparse+anydoc+rapidocr",
    # A page takes 3 s of processor.
    timeout_s=600.0,
)
EXTRACT = gateway.Endpoint(
    slug="sandbox-extract",
    title="Sandbox extraction (fixed rules, not an AI model)",
    description=(
        "Finds title, headings, tables, dates, amounts and labelled values in a document, and "
        "returns them as JSON. With a JSON Schema, its properties get the values of like labels, "
        "and null otherwise. Fixed rules for trying out the gateway; not an AI model."
    ),
    model="rules-v1",
    provider="gateway",
    capability="document-extraction",
    price_units=gateway.usdc("0.02"),
    cost_micros=0,
    required_fields=("prompt", "fileBase64", "fileName"),
    # Those whose text every installation reads.
    file_extensions=tuple(KINDS),
    max_pages=100,
    timeout_s=60.0,
)


@gateway.hookimpl
def register_endpoints(
    register: Callable[[gateway.Endpoint, gateway.Provider], None], settings: gateway.Settings
) -> None:
    """Put the parser on sale, which needs no key, and for the sandbox the extraction."""
    parser = DocumentParser()
    register(READING_PICTURES if parser.reads_pictures else ENDPOINT, parser)
    if settings.sandbox:
        # Scanned pages of a PDF take as long as they do for the parser.
        timeout_s = READING_PICTURES.timeout_s if parser.reads_pictures else EXTRACT.timeout_s
        register(attrs.evolve(EXTRACT, timeout_s=timeout_s), DocumentExtractor(parser))
