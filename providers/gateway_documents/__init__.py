"""The embedded document parser: PDF, Office, HTML, EPUB, CSV and text to Markdown, without a key.

Parts, from the outside in: `provider` is what the gateway sees; `kinds`, `archives` and `text` tell
before payment what a file is; `nursery` keeps the process that is forked once for each document;
`child` is what runs over there, and never imports the gateway.
"""

from collections.abc import Callable

import gateway
from gateway_documents.provider import DocumentParser

ENDPOINT = gateway.Endpoint(
    slug="document-parser",
    title="Document to Markdown",
    description=(
        "Turns a PDF, Word, PowerPoint, Excel, HTML, EPUB, CSV or text file of up to 7.5 MB into "
        "Markdown that keeps headings, lists and tables. Reads text, not pictures of text."
    ),
    model="markitdown+pdf-inspector",
    provider="gateway",
    capability="document-parsing",
    price_units=gateway.usdc("0.01"),
    required_fields=("fileBase64", "fileName"),
    file_extensions=(
        ".pdf",
        ".docx",
        ".pptx",
        ".xlsx",
        ".html",
        ".htm",
        ".epub",
        ".csv",
        ".txt",
        ".md",
    ),
    timeout_s=60.0,  # a normal file takes 0.4 s, a hostile one 10 s of processor; the rest is queue
)


@gateway.hookimpl
def register_endpoints(
    register: Callable[[gateway.Endpoint, gateway.Provider], None],
) -> None:
    """Offer the parser; it needs no key, so it is always on sale."""
    register(ENDPOINT, DocumentParser())
