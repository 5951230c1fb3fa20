"""Slides that some readers show and others do not: they are paid for, or the file is refused."""

import io
import re
import struct
import warnings
import zipfile

import pytest

from tests.proof.sandbox.conftest import charged_pages

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT = "http://purl.oclc.org/ooxml/officeDocument/relationships"
MAIN = "http://schemas.openxmlformats.org/presentationml/2006/main"
SLIDES = 120


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
