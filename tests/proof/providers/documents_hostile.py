"""Files made to attack a parser, or to be refused by one; each is small and built in code."""

import io
import random
import zipfile
import zlib
from collections.abc import Iterator

import documents_files as files
import documents_pdf as pdf

GIGABYTE = 1_000_000_000
LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True)
    )
    + "]>"
)
STEAL = '<!DOCTYPE x [<!ENTITY j SYSTEM "file:///etc/passwd">]>'
_NOTHING = f'<w:document xmlns:w="{files.WORD}"><w:body/></w:document>'
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def word_bomb(unpacked: int) -> bytes:
    """Return a Word file with a part of `unpacked` spaces."""
    return _declared(files.docx(), "word/media/picture.xml", unpacked)


def lying_bomb() -> bytes:
    """Return a Word bomb whose directory declares a hundred bytes."""
    bomb = bytearray(word_bomb(300_000_000))
    at = bomb.rfind(b"PK\x01\x02")
    bomb[at + 24 : at + 28] = (100).to_bytes(4, "little")
    return bytes(bomb)


def _declared(document: bytes, name: str, size: int) -> bytes:
    """Add a member of `size` spaces to a ZIP file."""
    buffer = io.BytesIO(document)
    with (
        zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w") as part,
    ):
        chunk = b" " * 10_000_000
        for _ in range(size // len(chunk)):
            part.write(chunk)
    return buffer.getvalue()


def heavy_docx() -> bytes:
    """Return a Word file below every limit that still needs gigabytes to parse."""
    numbers = random.Random(8453)
    return files.docx(*(str(numbers.random()) for _ in range(600_000)))


def pdf_bomb() -> bytes:
    """Return a PDF whose page unpacks, doubly compressed, to a gigabyte."""
    chunk = b"BT /F1 9 Tf (x) Tj ET " * 50_000
    return pdf.write_contents([packed(chunk, GIGABYTE // len(chunk))])


def packed(chunk: bytes, times: int) -> bytes:
    """Return a zlib stream (RFC 1950) of one block repeated; packing all of it takes seconds."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(chunk) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 1
    for _ in range(times):
        checksum = zlib.adler32(chunk, checksum)
    # A header, the blocks, an empty last block, the checksum.
    return b"\x78\xda" + block * times + b"\x03\x00" + checksum.to_bytes(4, "big")


def sparse_xlsx() -> bytes:
    """Return a workbook that claims a million rows of 16,384 columns and has two cells."""
    return workbook(
        '<row r="1"><c r="A1"><v>1</v></c></row>'
        '<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    )


def wide_xlsx() -> bytes:
    """Return a workbook with a cell in the last column of 200,000 rows, each in another one."""
    names = [_column(1 + 13 * at % 16_384) for at in range(200_000)]
    return workbook(
        "".join(
            f'<row r="{r}"><c r="{n}{r}"><v>1</v></c></row>' for r, n in enumerate(names, start=1)
        )
    )


def _column(number: int) -> str:
    name = ""
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(65 + rest) + name
    return name


def workbook(rows: str, doctype: str = "") -> bytes:
    """Return a workbook of one sheet with these rows."""
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    return files.office(
        "xl/workbook.xml",
        f'<workbook xmlns="{SHEET}" xmlns:r="{relations}"><sheets>'
        '<sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>',
        **{
            "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org'
            '/package/2006/relationships"><Relationship Id="rId1" '
            f'Target="worksheets/sheet1.xml" Type="{relations}/worksheet"/></Relationships>',
            "xl/worksheets/sheet1.xml": f'{doctype}<worksheet xmlns="{SHEET}">'
            f'<dimension ref="A1:XFD1048576"/><sheetData>{rows}</sheetData></worksheet>',
        },
    )


def entity_files() -> Iterator[tuple[str, bytes]]:
    """Yield Office files and books with XML entity bombs, or entities for /etc/passwd."""
    for doctype in (LAUGHS, STEAL):
        yield (
            "book.xlsx",
            workbook('<row r="1"><c t="inlineStr"><is><t>&j;</t></is></c></row>', doctype),
        )
        body = f'<w:document xmlns:w="{files.WORD}"><w:body><w:p><w:r><w:t>&j;</w:t></w:r></w:p>'
        for encoding in ("utf-8", "utf-16"):
            xml = f"{doctype}{body}</w:body></w:document>".encode(encoding)
            yield f"{encoding}.docx", files.office("word/document.xml", xml)
        yield "tale.epub", files.epub(doctype)


def deep_html() -> bytes:
    """Return a page of 100,000 nested elements."""
    return b"<html><body>" + b"<div>" * 100_000 + b"deep"


def traversing_docx() -> bytes:
    """Return a Word file with parts whose names escape any folder."""
    return files.office(
        "word/document.xml", _NOTHING, **{"../../../tmp/owned": "x", "/tmp/owned": "x"}
    )


def encrypted_office() -> bytes:
    """Return an OLE container with the stream's name of an encrypted .docx."""
    return bytes.fromhex("d0cf11e0a1b11ae1") + bytes(1024) + "EncryptedPackage".encode("utf-16-le")


def encrypted_pdf(password: str) -> bytes:
    """Return a PDF that needs a password, possibly the empty one."""
    page = pdf.Page()
    page.text(100, 700, "Nobody but us can read this line.")
    return pdf.write([page], password=password)


def noise(size: int = 50_000) -> bytes:
    """Return deterministic random bytes."""
    return random.Random(8453).randbytes(size)


def big_csv(size: int = 7_000_000) -> bytes:
    """Return a CSV file of ordinary numbers."""
    line = "2026-09-30,North Sea coast,1204,148050.25,yes\n"
    return ("day,region,orders,revenue,paid\n" + line * (size // len(line))).encode()
