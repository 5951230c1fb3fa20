"""Responses with content codings that were not asked for: real, left over, or made up."""

import gzip
import zlib

import pytest

from gateway.errors import Transient
from gateway.outputs.codings import TooLarge, undo_codings

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
JPEG = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 40
LIMIT = len(PNG) + 1_000
SIGNED = b";chunk-signature=" + b"a" * 64


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def framed(data: bytes, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    """Frame as an upload to S3 is framed, in pieces of 4,000 bytes."""
    pieces = [data[start : start + 4_000] for start in range(0, len(data), 4_000)]
    chunks = [b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in (*pieces, b"")]
    return b"".join(chunks)[:-2] + trailer + b"\r\n"


def undone(body: bytes, header: str) -> bytes:
    return undo_codings(body, header, max_bytes=LIMIT)


@pytest.mark.parametrize(
    "header",
    [
        *(
            "aws-chunked",
            "AWS-Chunked",
            "aws-chunked,identity",
            "identity, aws-chunked",
            ",",
            "none",
        ),
        *("utf-8", "binary", "base64", "image/png", "gzip", "x-gzip", "deflate", "br", "zstd"),
        *("gzip, aws-chunked", "aws-chunked, br", "compress"),
    ],
)
@pytest.mark.parametrize("file", [PNG, JPEG])
def test_a_header_that_says_nothing_about_the_bytes_is_ignored(header, file):
    assert undone(file, header) == file


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (gzip.compress(PNG), "gzip"),
        (gzip.compress(PNG), "GZIP"),
        (gzip.compress(PNG[:5_000]) + gzip.compress(PNG[5_000:]), "x-gzip"),
        (gzip.compress(PNG) + b"\0" * 100, "gzip"),
        (gzip.compress(PNG), "gzip, aws-chunked"),
        (framed(gzip.compress(PNG)), "gzip, aws-chunked"),
        (gzip.compress(gzip.compress(PNG)), "gzip, gzip"),
        (zlib.compress(PNG), "deflate"),
        (bare(PNG), "deflate"),
        (framed(PNG), "aws-chunked"),
        (framed(PNG, SIGNED), "aws-chunked"),
        (framed(PNG, trailer=b"x-amz-checksum-crc32:AAAAAA==\r\n"), "aws-chunked"),
    ],
)
def test_a_coding_that_is_in_the_bytes_is_undone(body, header):
    assert undone(body, header) == PNG


@pytest.mark.parametrize("text", [b"", b"5\r\nno frames", b"3\r\nabc", b"ff\r\n" + b"x" * 300])
def test_bytes_that_only_look_like_frames_stay(text):
    assert undone(text, "aws-chunked") == text


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, bare])
def test_nothing_is_decompressed_beyond_the_limit(pack):
    header = "gzip" if pack is gzip.compress else "deflate"
    with pytest.raises(TooLarge, match=f"more than {LIMIT} bytes"):
        undone(pack(b"0" * 50_000_000), header)
    with pytest.raises(TooLarge):
        undone(gzip.compress(gzip.compress(b"0" * 50_000_000)), "gzip, gzip")


@pytest.mark.parametrize(
    ("body", "header", "reason"),
    [
        (gzip.compress(PNG)[:-9], "gzip", "cut off"),
        (gzip.compress(PNG)[:10] + b"\xff" * 100, "gzip", "damaged"),
        (b"\x0b\x02\x80packed\x03", "br", "compressed as br"),
        (b"\x28\xb5\x2f\xfdpacked", "aws-chunked, zstd", "compressed as zstd"),
        (b"no stream", "deflate", "damaged"),
        (gzip.compress(b"") * 100_000, "gzip", "too many parts"),
        (PNG, ",".join(["gzip"] * 9), "too many content codings"),
    ],
)
def test_what_cannot_be_decoded_is_no_answer(body, header, reason):
    with pytest.raises(Transient, match=reason):
        undone(body, header)
