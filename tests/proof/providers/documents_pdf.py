"""Encrypted PDFs and PDFs of raw content streams; the demo draws the pages."""

import hashlib
import zlib
from collections.abc import Sequence

import attrs

from gateway_demo.pdf import BOLD, HEIGHT, REGULAR, WIDTH, Colour, Font, Page

__all__ = ["BOLD", "HEIGHT", "REGULAR", "WIDTH", "Colour", "Page", "write", "write_contents"]


def write(pages: Sequence[Page], *, title: str = "", password: str | None = None) -> bytes:
    """Return a PDF of these pages; `password` encrypts it (even an empty one)."""
    contents = ["\n".join(page.operators).encode("cp1252") for page in pages]
    return write_contents([zlib.compress(content) for content in contents], title, password)


def write_contents(
    contents: Sequence[bytes], title: str = "", password: str | None = None
) -> bytes:
    """Return a PDF whose pages have these deflated content streams."""
    first_page = 6
    kids = " ".join(f"{first_page + 2 * index} 0 R" for index in range(len(contents)))
    bodies: list[tuple[str, bytes | None]] = [
        ("<< /Type /Catalog /Pages 2 0 R >>", None),
        (f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>", None),
        *((_font_object(font), None) for font in (REGULAR, BOLD)),
        ("<< >>" if password is not None else f"<< /Title ({title}) >>", None),
    ]
    for index, content in enumerate(contents):
        stream = f"{first_page + 2 * index + 1} 0 R"
        bodies.append((_page_object(stream), None))
        bodies.append((f"<< /Length {len(content)} /Filter /FlateDecode >>", content))
    lock = _Lock.of(password) if password is not None else None
    if lock is not None:
        bodies.append((lock.dictionary, None))
    return _assemble(bodies, lock)


def _font_object(font: Font) -> str:
    return f"<< /Type /Font /Subtype /Type1 /BaseFont /{font.base} /Encoding /WinAnsiEncoding >>"


def _page_object(stream: str) -> str:
    return (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Contents {stream} "
        "/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>"
    )


def _assemble(bodies: Sequence[tuple[str, bytes | None]], lock: "_Lock | None") -> bytes:
    pdf = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, (dictionary, stream) in enumerate(bodies, start=1):
        offsets.append(len(pdf))
        pdf += f"{number} 0 obj\n{dictionary}\n".encode("latin-1")
        if stream is not None:
            pdf += (
                b"stream\n" + (lock.encrypt(number, stream) if lock else stream) + b"\nendstream\n"
            )
        pdf += b"endobj\n"
    xref = len(pdf)
    pdf += f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode()
    pdf += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    encrypt = f" /Encrypt {len(bodies)} 0 R" if lock else ""
    identity = "<00112233445566778899aabbccddeeff>"
    entries = (
        f"/Size {len(bodies) + 1} /Root 1 0 R /Info 5 0 R /ID [{identity} {identity}]{encrypt}"
    )
    return bytes(pdf + f"trailer\n<< {entries} >>\nstartxref\n{xref}\n%%EOF\n".encode())


@attrs.frozen
class _Lock:
    """The standard security handler, revision 2: RC4 with 40 bits (PDF 1.4 §3.5)."""

    key: bytes
    dictionary: str

    @classmethod
    def of(cls, password: str) -> "_Lock":
        padding = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
        padded = (password.encode() + padding)[:32]
        owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
        identity = bytes.fromhex("00112233445566778899aabbccddeeff")
        permissions = -4
        seed = padded + owner + permissions.to_bytes(4, "little", signed=True) + identity
        key = hashlib.md5(seed).digest()[:5]
        return cls(
            key,
            f"<< /Filter /Standard /V 1 /R 2 /O <{owner.hex()}> /U <{_rc4(key, padding).hex()}> "
            f"/P {permissions} >>",
        )

    def encrypt(self, number: int, data: bytes) -> bytes:
        seed = self.key + number.to_bytes(3, "little") + b"\0\0"
        return _rc4(hashlib.md5(seed).digest()[:10], data)


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    i = j = 0
    out = bytearray()
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
