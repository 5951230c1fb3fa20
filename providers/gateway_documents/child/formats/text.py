"""Plain text and Markdown."""

from gateway_documents.child.charsets import decode
from gateway_documents.child.parsed import Parsed


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
