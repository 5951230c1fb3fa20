"""Pages that some readers see and others do not: they are paid for, or the file is refused."""

import io
import re
import struct
import warnings
import zipfile

import pytest

from gateway.domain import Attachment
from gateway.errors import InvalidInput
from gateway.sandbox.pages import Pages

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT = "http://purl.oclc.org/ooxml/officeDocument/relationships"
MAIN = "http://schemas.openxmlformats.org/presentationml/2006/main"
SLIDES = 120


@pytest.fixture(scope="module")
def pages():
    pages = Pages()
    yield pages
    pages.close()


async def charged_pages(pages, name, data):
    """Return the pages that the price counts; None if the file is refused."""
    try:
        return await pages.count(Attachment(name=name, data=data))
    except InvalidInput:
        return None


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


# -- presentations


def relationship(number: int, *, kind: str = f"{OFFICE}/slide", target: str = "") -> str:
    return (
        f'<Relationship Id="r{number}" Type="{kind}" Target="{target or f"slides/s{number}.xml"}"/>'
    )


def relationships(entries: str) -> str:
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<?xml version="1.0"?><Relationships xmlns="{space}">{entries}</Relationships>'


def presentation(ids: str, link_space: str = OFFICE) -> str:
    spaces = f'xmlns:p="{MAIN}" xmlns:r="{link_space}"'
    return f'<?xml version="1.0"?><p:presentation {spaces}>{ids}</p:presentation>'


def slide_list(count: int, *, repeat: bool = False) -> str:
    ids = (f'<p:sldId id="{300 + at}" r:id="r{0 if repeat else at}"/>' for at in range(count))
    return f"<p:sldIdLst>{''.join(ids)}</p:sldIdLst>"


def deck(
    *, listed=None, links=None, more=None, main="ppt/presentation.xml"
) -> dict[str, str | bytes]:
    """Return the parts of a presentation that readers open; slides have their own names."""
    folder, _, name = main.rpartition("/")
    parts: dict[str, str | bytes] = {
        "_rels/.rels": relationships(relationship(1, kind=f"{OFFICE}/officeDocument", target=main)),
        main: presentation(slide_list(SLIDES)) if listed is None else listed,
        f"{folder}/_rels/{name}.rels": links
        or relationships("".join(relationship(at) for at in range(SLIDES))),
    }
    return parts | {f"ppt/slides/s{at}.xml": "<p:sld/>" for at in range(SLIDES)} | (more or {})


def zipped(parts: dict[str, str | bytes], *, comment: bytes = b"") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
        archive.comment = comment
    return file.getvalue()


LINKS = relationships("".join(relationship(at) for at in range(SLIDES)))
NONE_LISTED = presentation("")
DECKS = {
    "plain": deck(),
    "a character entity": deck(listed=NONE_LISTED, links=LINKS.replace("/slide", "/&#115;lide")),
    "a hexadecimal entity": deck(listed=NONE_LISTED, links=LINKS.replace("/slide", "&#x2F;slide")),
    "UTF-16": deck(
        listed=NONE_LISTED, links=LINKS.replace("?>", ' encoding="UTF-16"?>').encode("utf-16")
    ),
    "UTF-16 throughout": {
        name: part.replace("?>", ' encoding="UTF-16"?>').encode("utf-16")
        if "rels" in name
        else part
        for name, part in deck().items()
    },
    "a list in UTF-16": deck(
        listed=presentation(slide_list(SLIDES)).encode("utf-16-le"),
        links=relationships(relationship(0)),
    ),
    "spaces around the type": deck(
        listed=NONE_LISTED, links=re.sub(r'Type="([^"]*)"', r"Type = ' \1 '", LINKS)
    ),
    "the strict namespace": deck(
        listed=presentation(slide_list(SLIDES), STRICT), links=LINKS.replace(OFFICE, STRICT)
    ),
    "one slide listed again and again": deck(
        listed=presentation(slide_list(SLIDES, repeat=True)), links=relationships(relationship(0))
    ),
    "another prefix": deck(
        listed=re.sub(
            r"\bp(?=[:=])", "q", re.sub(r"\br(?=[:=])", "z", presentation(slide_list(SLIDES)))
        ),
        links=relationships(relationship(0)),
    ),
    "another main part": deck(main="ppt/show.xml")
    | {
        "ppt/presentation.xml": presentation(slide_list(1)),
        "ppt/_rels/presentation.xml.rels": relationships(relationship(0)),
    },
}


async def test_every_slide_that_readers_show_is_charged(pages):
    found = {
        name: await charged_pages(pages, "a.pptx", zipped(parts)) for name, parts in DECKS.items()
    }
    assert found == dict.fromkeys(DECKS, SLIDES)


async def test_slides_of_sections_are_not_charged_twice(pages):
    from pptx import Presentation

    show = Presentation()
    for _ in range(3):
        show.slides.add_slide(show.slide_layouts[6])
    sections = "".join(f'<p14:sldId id="{slide.slide_id}"/>' for slide in show.slides)
    file = io.BytesIO()
    show.save(file)
    assert await charged_pages(pages, "a.pptx", file.getvalue()) == 3
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    space = "http://schemas.microsoft.com/office/powerpoint/2010/main"
    listed = f'<p14:sldIdLst xmlns:p14="{space}">{sections}</p14:sldIdLst></p:presentation>'
    parts["ppt/presentation.xml"] = parts["ppt/presentation.xml"].replace(
        b"</p:presentation>", listed.encode()
    )
    assert await charged_pages(pages, "a.pptx", zipped(parts)) == 3


def twice(first: dict, second: dict) -> bytes:
    """Return a container in which each part of `second` is repeated after that of `first`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, warnings.catch_warnings(action="ignore"):
        for parts in (first, second):
            for name, text in parts.items():
                archive.writestr(name, text)
    return file.getvalue()


SMALL = deck(listed=presentation(slide_list(1)), links=relationships(relationship(0)))
WORD = {"word/document.xml": "<w:document/>"}
DTD = '<!DOCTYPE x [<!ENTITY s "slide">]>'


def strange_containers() -> dict[str, bytes]:
    rooted = relationships(
        relationship(1, kind=f"{OFFICE}/officeDocument", target="ppt/presentation.xml")
        + relationship(2, kind=f"{OFFICE}/officeDocument", target="ppt/show.xml")
    )
    return {
        "parts that stand twice": twice(deck(), SMALL),
        "parts that differ by case": zipped(
            SMALL | {"PPT/presentation.xml": deck()["ppt/presentation.xml"]}
        ),
        "a container before it": zipped(deck()) + zipped(SMALL),
        "a container in its comment": zipped(SMALL, comment=zipped(deck())[:60_000]),
        "bytes after its end": zipped(SMALL) + b"\0" * 30,
        "an entity of its own": zipped(
            deck(
                listed=NONE_LISTED, links=LINKS.replace("?>", "?>" + DTD).replace("/slide", "/&s;")
            )
        ),
        "a Word document": zipped(SMALL | WORD),
        "a Word document as the main part": zipped(
            SMALL
            | {
                "_rels/.rels": relationships(
                    relationship(1, kind=f"{OFFICE}/officeDocument", target="doc/a.xml")
                ),
                "doc/a.xml": "<document/>",
            }
        ),
        "a workbook": zipped(SMALL | {"xl/workbook.xml": "<workbook/>"}),
        "two main parts": zipped(
            SMALL | {"_rels/.rels": rooted, "ppt/show.xml": deck()["ppt/presentation.xml"]}
        ),
        "links behind megabytes of spaces": zipped(
            deck(listed=NONE_LISTED, links=LINKS.replace("?>", "?>" + " " * 9_000_000))
        ),
        "a list in pieces": zipped(SMALL | {"ppt/presentation.xml/[0].piece": "<p:presentation/>"}),
    }


async def test_a_container_in_which_readers_find_different_slides_is_refused(pages):
    for name, data in strange_containers().items():
        assert await charged_pages(pages, "a.pptx", data) is None, name


class Pipe(io.RawIOBase):
    """A file without positions, so writers put each member's sizes after it."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        self.data += data
        return len(data)


async def test_a_container_with_sizes_behind_its_members_is_counted(pages):
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (deck() | {"Configurations2/": "", "docProps/é.xml": "<a/>"}).items():
            archive.writestr(name, text)
    assert await charged_pages(pages, "a.pptx", bytes(pipe.data)) == SLIDES


END = struct.Struct("<4s4H2LH")
INNER = "ppt/media/a.bin"


def nested(*, in_comment: bool = False) -> tuple[bytes, tuple]:
    """Return `SMALL` with a deck in its first member, and the deck's end record.

    With `in_comment`, the deck's directory is the comment of the last member.
    """
    file = io.BytesIO(bytes(30 + len(INNER)))
    file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in deck().items():
            archive.writestr(name, text)
    inner = file.getvalue()
    end = END.unpack(inner[-22:])
    directory = inner[end[6] : -22]
    last = zipfile.ZipInfo("last.xml")
    last.comment = directory if in_comment else b""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(INNER, inner[30 + len(INNER) :])
        for name, text in SMALL.items():
            archive.writestr(name, text)
        archive.writestr(last, "")
    return file.getvalue(), end


def with_zip64() -> bytes:
    data, inner_end = nested()
    _, _, _, total, _, size, at, _ = END.unpack(data[-22:])
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, total, total, size, at)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(data) - 22, 1)
    return data[:-22] + record + locator + END.pack(*inner_end)


def with_directory_in_comment() -> bytes:
    data, inner_end = nested(in_comment=True)
    magic, _, _, _, _, size, at, _ = END.unpack(data[-22:])
    inside = len(data) - 22 - inner_end[5]
    # `zipfile` subtracts the excess of the offset from each member's position.
    directory = bytearray(data[at:-22])
    entry = 0
    while entry < len(directory):
        (place,) = struct.unpack_from("<L", directory, entry + 42)
        struct.pack_into("<L", directory, entry + 42, place + inside - at)
        entry += 46 + sum(struct.unpack_from("<3H", directory, entry + 28))
    total = inner_end[3]
    return data[:at] + directory + END.pack(magic, 0, 0, total, total, size, inside, 0)


@pytest.mark.parametrize("container", [with_zip64, with_directory_in_comment])
async def test_a_container_with_two_directories_is_refused(pages, container):
    assert await charged_pages(pages, "a.pptx", container()) is None


def renamed(old: str, new: str) -> dict[str, str | bytes]:
    """Return a deck of 120 slides with the usual names of one slide, with a part renamed."""
    parts = deck(main="ppt/show.xml") | {
        "ppt/presentation.xml": presentation(slide_list(1)),
        "ppt/_rels/presentation.xml.rels": relationships(relationship(0)),
    }
    return {new if name == old else name: text for name, text in parts.items()}


STRANGE_NAMES = {
    "a percent code": deck(main="ppt/x1.xml")
    | {
        "_rels/.rels": relationships(
            relationship(1, kind=f"{OFFICE}/officeDocument", target="ppt/x%31.xml")
        ),
        "ppt/x%31.xml": presentation(slide_list(1)),
        "ppt/_rels/x%31.xml.rels": relationships(relationship(0)),
    },
    "links in another case": renamed("_rels/.rels", "_RELS/.rels"),
    "links from the root": renamed("_rels/.rels", "/_rels/.rels"),
    "links with a backslash": renamed("_rels/.rels", "_rels\\.rels"),
    "links of an empty folder": renamed("_rels/.rels", "_rels//.rels"),
    "links in this folder": renamed("_rels/.rels", "./_rels/.rels"),
    "a main part in another case": {
        "PPT/presentation.xml": deck()["ppt/presentation.xml"],
        "ppt/_rels/presentation.xml.rels": relationships(relationship(0)),
    },
}


@pytest.mark.parametrize("name", STRANGE_NAMES)
async def test_a_name_that_readers_take_for_another_is_refused(pages, name):
    assert await charged_pages(pages, "a.pptx", zipped(STRANGE_NAMES[name])) is None


async def test_a_member_with_two_names_is_refused(pages):
    data = zipped(SMALL | {"ppt/other.xml": "<a/>"})
    assert await charged_pages(pages, "a.pptx", data) == 1
    for changed in (
        data.replace(b"ppt/other.xml", b"ppt/local.xml", 1),
        data.replace(b"ppt/other.xml", b"ppt/other\0xml"),
    ):
        assert await charged_pages(pages, "a.pptx", changed) is None
