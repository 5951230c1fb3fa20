"""Pages that some readers see and others do not: they are paid for, or the file is refused."""

import io

import pytest

from gateway.domain import Attachment
from gateway.errors import InvalidInput
from tests.proof.sandbox.conftest import charged_pages

# -- PDF


def pdf_of(*objects: str, head: bytes = b"", version: bytes = b"%PDF-1.4\n") -> bytes:
    """Return a PDF of objects 1, 2 and so on, with a correct table of objects."""
    data, places = bytearray(head + version), []
    for number, body in enumerate(objects, start=1):
        places.append(len(data) - len(head))
        data += f"{number} 0 obj {body} endobj\n".encode()
    table = len(data) - len(head)
    data += f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n".encode()
    data += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    data += f"trailer <</Root 1 0 R /Size {len(places) + 1}>>\n".encode()
    return bytes(data + f"startxref\n{table}\n%%EOF\n".encode())


CATALOG = "<</Type/Catalog/Pages 2 0 R>>"
PAGE = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>"


def root(kids: str, count: int) -> str:
    return f"<</Type/Pages/Count {count}/Kids{kids}>>"


def node(kids: str, count: int) -> str:
    return f"<</Type/Pages/Parent 2 0 R/Count {count}/Kids[{kids}]>>"


REPEATED = {
    "one page a thousand times": (
        pdf_of(CATALOG, root("[" + "3 0 R " * 1000 + "]", 1000), PAGE),
        1000,
    ),
    "with a small claim": (pdf_of(CATALOG, root("[" + "3 0 R " * 1000 + "]", 1), PAGE), 1000),
    "a list of its own object": (
        pdf_of(CATALOG, root(" 4 0 R", 300), PAGE, "[" + "3 0 R " * 300 + "]"),
        300,
    ),
    "seven pages twelve times": (
        pdf_of(CATALOG, root("[" + "4 0 R " * 12 + "]", 84), PAGE, node("3 0 R " * 7, 7)),
        84,
    ),
}
HIDDEN = {
    "pages without a type": (
        pdf_of(CATALOG, root("[" + "3 0 R " * 50 + "4 0 R]", 51), "<</Parent 2 0 R>>", PAGE),
        51,
    ),
    "pages of a misspelled type": (
        pdf_of(CATALOG, root("[3 0 R 4 0 R]", 2), PAGE, PAGE.replace("/Page/", "/Pages/")),
        2,
    ),
    "nodes without a type": (
        pdf_of(CATALOG, root("[3 0 R 4 0 R]", 9), PAGE, f"<</Kids[{'3 0 R ' * 8}]/Count 8>>"),
        9,
    ),
    "nodes called pages": (
        pdf_of(CATALOG, root("[3 0 R 4 0 R]", 9), PAGE, f"<</Type/Page/Kids[{'3 0 R ' * 8}]>>"),
        9,
    ),
    "pages in the list itself": (pdf_of(CATALOG, root(f"[3 0 R {PAGE * 20}]", 21), PAGE), 21),
    "two lists": (
        pdf_of(CATALOG, root("[" + "3 0 R " * 90 + "]/Kids[3 0 R]", 90), PAGE),
        90,
    ),
    "another generation": (pdf_of(CATALOG, root("[3 0 R " + "3 7 R " * 40 + "]", 41), PAGE), 41),
    "a ring": (pdf_of(CATALOG, root("[3 0 R 4 0 R]", 5), PAGE, node("3 0 R 2 0 R", 3)), 5),
    "bytes before the file": (
        pdf_of(CATALOG, root("[" + "3 0 R " * 30 + "]", 30), PAGE, head=b"GIF89a\n"),
        30,
    ),
    "no table of objects": (
        pdf_of(CATALOG, root("[" + "3 0 R " * 30 + "]", 30), PAGE).replace(
            b"startxref", b"startxxxx"
        ),
        30,
    ),
    "two tables of objects": (
        pdf_of(CATALOG, root("[" + "3 0 R " * 30 + "]", 30), PAGE)
        + pdf_of(CATALOG, root("[3 0 R]", 1), PAGE),
        30,
    ),
}


async def test_a_page_that_is_named_again_counts_again(pages):
    found = {
        name: await charged_pages(pages, "a.pdf", data) for name, (data, _) in REPEATED.items()
    }
    assert found == {name: seen for name, (_, seen) in REPEATED.items()}


async def test_no_reader_sees_more_pages_of_a_pdf_than_are_charged(pages):
    for name, (data, seen) in HIDDEN.items():
        charged = await charged_pages(pages, "a.pdf", data)
        assert charged is None or charged >= seen, name


def two_tables(tail: str) -> bytes:
    """Return a PDF with a table for 1 page (A) and one for 50 (B), and a given end."""
    small = pdf_of(CATALOG, root("[3 0 R]", 1), PAGE)
    tables = [small.index(b"xref\n")]
    data = small[: small.index(b"startxref")]
    at = len(data)
    data += f"2 0 obj {root('[' + '3 0 R ' * 50 + ']', 50)} endobj\n".encode()
    tables.append(len(data))
    data += f"xref\n2 1\n{at:010} 00000 n \n".encode()
    data += f"trailer <</Root 1 0 R /Size 4 /Prev {tables[0]}>>\n".encode()
    return data + tail.format(A=tables[0], B=tables[1]).encode()


PLAIN_TAILS = {
    "one": "startxref\n{B}\n%%EOF\n",
    "one line": "startxref {B} %%EOF",
    "carriage returns": "startxref\r\n{B}\r\n%%EOF\r\n\r\n",
    "an update": "startxref\n{A}\n%%EOF\nstartxref\n{B}\n%%EOF\n",
    "the table of a linearized file": "startxref\n0\n%%EOF\nstartxref\n{B}\n%%EOF\n",
    "zeros": "startxref\n{B}\n%%EOF\n\0\0\0",
}
TAILS = {
    "an offset that is no integer": "startxref\n{A}\n%%EOF\nstartxref\n{B}.0\n%%EOF\n",
    "another word": "startxref\n{B}\n%%EOF\nXstartxref\n{A}\n%%EOF\n",
    "a comment": "startxref\n%{B}\n{A}\n%%EOF\n",
    "another word first": "Xstartxref\n{B}\n%%EOF\nstartxref\n{A}\n%%EOF\n",
    "no integer first": "startxref\n{B}.0\n%%EOF\nstartxref\n{A}\n%%EOF\n",
    "bytes after the end": "startxref\n{B}\n%%EOF\nstartxref\n{A}\n%%EOF\n%",
    "no end": "startxref\n{A}\n",
    "an end far away": "startxref\n{A}\n%%EOF\n" + "\n" * 1100,
    "a word cut by the search": "Xstartxref\n{A}\n%%EOF".ljust(1054 + 1),
}


async def test_a_pdf_whose_last_table_is_not_certain_is_refused(pages):
    plain = {
        name: await charged_pages(pages, "a.pdf", two_tables(tail))
        for name, tail in PLAIN_TAILS.items()
    }
    assert plain == dict.fromkeys(PLAIN_TAILS, 50)
    for name, tail in TAILS.items():
        assert await charged_pages(pages, "a.pdf", two_tables(tail)) is None, name


async def test_pdfs_of_common_libraries_are_counted(pages):
    import pikepdf
    from PIL import Image

    file = io.BytesIO()
    frames = [Image.new("RGB", (9, 9)) for _ in range(3)]
    frames[0].save(file, "PDF", save_all=True, append_images=frames[1:])
    assert await charged_pages(pages, "a.pdf", file.getvalue()) == 3
    streams = pikepdf.ObjectStreamMode.generate
    for options in ({}, {"linearize": True}, {"object_stream_mode": streams}):
        saved = io.BytesIO()
        with pikepdf.open(file) as pdf:
            pdf.save(saved, **options)
        assert await charged_pages(pages, "a.pdf", saved.getvalue()) == 3, options


async def test_nodes_that_multiply_are_counted_without_walking_each_way(pages):
    tree = [CATALOG, root("[4 0 R 4 0 R]", 1), PAGE]
    tree += [node(f"{at} 0 R {at} 0 R", 1) for at in range(5, 33)] + [node("3 0 R", 1)]
    assert await charged_pages(pages, "a.pdf", pdf_of(*tree)) == 2**29


async def test_a_list_without_end_ends_within_the_limits_and_the_next_is_counted(pages):
    endless = pdf_of(CATALOG, root("[" + "3 0 R " * 1_200_000 + "]", 1), PAGE)
    with pytest.raises(InvalidInput, match="takes too much time"):
        await pages.count(Attachment(name="a.pdf", data=endless))
    assert await charged_pages(pages, "a.pdf", pdf_of(CATALOG, root("[3 0 R]", 1), PAGE)) == 1


async def test_a_pdf_in_another_file_is_not_taken_for_that_file(pages):
    frame = b"II*\0" + bytes([8, 0, 0, 0]) + bytes(6)
    inner = pdf_of(CATALOG, root("[" + "3 0 R " * 30 + "]", 30), PAGE)
    for name, start in (("a.tif", frame), ("a.heif", b"\0\0\0\x18ftypheic"), ("a.html", b"<p>")):
        assert await charged_pages(pages, name, start + inner) is None
    for name in ("a.heif", "a.avif", "a.html", "a.txt", "a.csv"):
        assert (
            await charged_pages(pages, name, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))
            is None
        )
