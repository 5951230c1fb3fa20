"""PDFs from the source of their objects, for what no program would write."""

from collections.abc import Mapping, Sequence

FONTS = "/F1 3 0 R"
HELVETICA = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"


def text(x: float, y: float, words: str, *, font: str = "F1", size: float = 12) -> str:
    """Return the operators that show words in brackets, or codes in angle brackets."""
    shown = words if words.startswith("<") else f"({words})"
    return f"BT /{font} {size} Tf {x} {y} Td {shown} Tj ET"


def stream(content: str | bytes, entries: str = "") -> bytes:
    """Return the source of a stream."""
    data = content if isinstance(content, bytes) else content.encode("latin-1")
    return f"<<{entries}/Length {len(data)}>>stream\n".encode() + data + b"\nendstream"


def raw_pdf(
    pages: Sequence[str | bytes | None],
    *,
    entries: str = "",
    resources: str = "",
    catalog: str = "",
    more: Mapping[int, str | bytes] | None = None,
) -> bytes:
    """Return a PDF of these content streams; a page of None is missing.

    Pages have `entries`, and `resources` beside `FONTS`. `more` are objects by number, from 50.
    """
    count = len(pages)
    kids = " ".join(f"{100 + at} 0 R" for at in range(count))
    objects: dict[int, str | bytes] = {
        1: f"<</Type/Catalog/Pages 2 0 R{catalog}>>",
        2: f"<</Type/Pages/Kids[{kids}]/Count {count}>>",
        3: HELVETICA,
        **(more or {}),
    }
    for at, content in enumerate(pages):
        if content is not None:
            objects[100 + at] = (
                f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {1100 + at} 0 R"
                f"/Resources<</Font<<{FONTS}>>{resources}>>{entries}>>"
            )
            objects[1100 + at] = stream(content)
    return _assembled(objects)


def _assembled(objects: Mapping[int, str | bytes]) -> bytes:
    pdf, places = bytearray(b"%PDF-1.7\n"), {}
    for number, source in sorted(objects.items()):
        places[number] = len(pdf)
        body = source if isinstance(source, bytes) else source.encode("latin-1")
        pdf += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    size, xref = max(objects) + 1, len(pdf)
    pdf += f"xref\n0 {size}\n0000000000 65535 f \n".encode()
    for number in range(1, size):
        kind = "00000 n" if number in places else "65535 f"
        pdf += f"{places.get(number, 0):010} {kind} \n".encode()
    return bytes(pdf + f"trailer<</Size {size}/Root 1 0 R>>\nstartxref\n{xref}\n%%EOF".encode())
