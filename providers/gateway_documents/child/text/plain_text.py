"""Plain text and Markdown."""

from gateway_documents.child.parsed import Parsed
from gateway_documents.child.text.charsets import decode


def parse(data: bytes) -> Parsed:
    """Return a text as it is; form feeds become empty lines."""
    decoded = decode(data)
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n")
    return Parsed([text], guess_note(decoded.guess))


def guess_note(charset: str | None) -> tuple[str, ...]:
    """Return the sentence about a charset that was guessed from few letters."""
    if charset is None:
        return ()
    return (f"The file does not name its character set; it was read as {charset}, a guess.",)
