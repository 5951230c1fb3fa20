"""The files that a Word document has instead of text of its own: HTML, MHTML, text, RTF, Word."""

from collections.abc import Callable
from email.message import Message
from email.parser import BytesParser

from gateway_documents.child import escaping
from gateway_documents.child.html import page
from gateway_documents.child.parsed import Parsed
from gateway_documents.child.text import plain_text
from gateway_documents.errors import Unreadable

_ARCHIVES = (".mht", ".mhtml", ".eml")
_PAGES = (".html", ".htm", ".xhtml")


def parse(name: str, data: bytes, parse_office: Callable[[str, bytes], Parsed]) -> str:
    """Return the Markdown of a file by its name; `parse_office` takes "docx" or "rtf"."""
    name = name.lower()
    if name.endswith(".xml"):
        # A whole Word document in one XML file (Flat OPC), which no parser here reads.
        raise Unreadable("The kind of the file is unknown.")
    if name.endswith(_ARCHIVES):
        return _joined(page.parse(_page_in(BytesParser().parsebytes(data))))
    if name.endswith(_PAGES):
        return _joined(page.parse(data))
    if name.endswith((".docx", ".rtf")):
        return _joined(parse_office(name.rpartition(".")[2], data))
    # Word shows each line as a paragraph.
    lines = _joined(plain_text.parse(data)).splitlines()
    return "\n\n".join(escaping.paragraph(line.strip()) for line in lines if line.strip())


def _joined(parsed: Parsed) -> str:
    return "\n\n".join(parsed.pages)


def _page_in(message: Message) -> bytes:
    """Return the first HTML page of an archive."""
    for part in message.walk():
        payload = part.get_payload(decode=True)
        if part.get_content_type() == "text/html" and isinstance(payload, bytes):
            return payload
    return b""
