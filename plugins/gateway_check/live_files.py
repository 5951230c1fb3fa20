"""Small files that `gateway check --live` sends to endpoints that take one."""

import struct
import zlib

from gateway.domain import DOCUMENT_FILE, PICTURE_FILE, Attachment, Endpoint
from gateway.domain.description import sample_file
from gateway.errors import SettingsError

# Pixels; some vendors refuse smaller pictures.
_SIDE = 512


def smallest_file(endpoint: Endpoint) -> Attachment:
    """Return the smallest file that the endpoint takes: one page of PDF, a picture, or a line."""
    files = {".pdf": _pdf(), ".png": _png(), ".txt": b"A small red boat.\n"}
    ending = next((one for one in files if one in endpoint.file_extensions), "")
    is_ours = any(kind in (DOCUMENT_FILE, PICTURE_FILE) for kind in endpoint.file_kinds)
    if not is_ours and (sample := sample_file(endpoint)):
        return Attachment(name=sample[0], data=sample[1])
    if not ending:
        raise SettingsError(
            f"{endpoint.slug} takes no PDF, PNG or text, and there is no other file to try it with."
        )
    return Attachment(name=f"live{ending}", data=files[ending])


def _pdf() -> bytes:
    line = b"BT /F1 24 Tf 72 700 Td (A small red boat on a calm sea) Tj ET"
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources %s >>"
        % b"<< /Font << /F1 5 0 R >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(line), line),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    written, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(b"%010d 00000 n \n" % len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, text)
    table = b"xref\n0 6\n0000000000 65535 f \n" + b"".join(places)
    end = b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(written)
    return written + table + end


def _png() -> bytes:
    rows = (b"\0" + b"\x40\x80\xc0" * _SIDE) * _SIDE
    head = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
