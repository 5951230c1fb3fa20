"""The files that a Word document has instead of text of its own: HTML, MHTML, text, RTF, Word."""

from collections.abc import Callable
from email.message import Message
from email.parser import BytesParser

from gateway_documents.child.formats import page, text
from gateway_documents.child.parsed import Parsed

_ARCHIVES = (".mht", ".mhtml", ".eml")
_PAGES = (".html", ".htm", ".xhtml")


def parse(name: str, data: bytes, parse_office: Callable[[str, bytes], Parsed]) -> str:
    """Return the Markdown of a file by its name; `parse_office` takes "docx" or "rtf"."""
    name = name.lower()
    if name.endswith(_ARCHIVES):
        name, data = "page.html", _page_in(BytesParser().parsebytes(data))
    if name.endswith(_PAGES):
        parsed = page.parse(data)
    elif name.endswith((".docx", ".rtf")):
        parsed = parse_office(name.rpartition(".")[2], data)
    else:
        parsed = text.parse(data)
    return "\n\n".join(parsed.pages)


def _page_in(message: Message) -> bytes:
    """Return the first HTML page of an archive."""
    for part in message.walk():
        payload = part.get_payload(decode=True)
        if part.get_content_type() == "text/html" and isinstance(payload, bytes):
            return payload
    return b""
