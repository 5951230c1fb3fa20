"""The page count of a document: counted, never trusted, and never paid for in vain."""

import io
import struct
import sys
import zipfile

import documents_files as files
import documents_hostile as hostile
import documents_pdf as pdf
import pytest
from PIL import Image

from gateway.domain import Attachment
from gateway.errors import ExecutionError, InvalidInput
from gateway.sandbox import Sandbox, SandboxLimits
from gateway.sandbox.pages import Pages
from gateway_demo.sample import sample_pdf


async def refusal(pages, name, data):
    with pytest.raises(InvalidInput) as refused:
        await pages.count(Attachment(name=name, data=data))
    return str(refused.value)


def pdf_of(count: int) -> bytes:
    return pdf.write([pdf.Page() for _ in range(count)])


def tiff(frames: int, *, big: bool = False) -> bytes:
    file = io.BytesIO()
    pictures = [Image.new("L", (8, 8), at) for at in range(frames)]
    pictures[0].save(file, "TIFF", save_all=True, append_images=pictures[1:], big_tiff=big)
    return file.getvalue()


async def test_the_pages_of_a_pdf_are_counted(pages):
    for count in (1, 2, 777):
        assert await pages.count(Attachment(name="A.PDF", data=pdf_of(count))) == count
    assert await pages.count(Attachment(name="a.pdf", data=sample_pdf())) == 2
    assert await pages.count(Attachment(name="a.pdf", data=files.scanned_pdf())) == 1


async def test_a_pdf_that_lies_about_its_pages_is_counted_all_the_same(pages):
    for claim in (b"/Count 1", b"/Count 9", b"/Count 0"):
        lie = pdf_of(7).replace(b"/Count 7", claim)
        assert await pages.count(Attachment(name="a.pdf", data=lie)) == 7


async def test_a_pdf_of_the_largest_size_with_thousands_of_pages_is_counted(pages):
    data = pdf_of(25_000)
    assert 6_000_000 < len(data) < 7_500_000
    assert await pages.count(Attachment(name="a.pdf", data=data)) == 25_000


async def test_a_pdf_that_cannot_be_read_is_refused_with_a_sentence(pages):
    assert "encrypted" in await refusal(pages, "a.pdf", hostile.encrypted_pdf("secret"))
    assert await refusal(pages, "a.pdf", b"") == "The file is empty."
    for broken in (b"text", sample_pdf()[:2000], b"%PDF-1.4\n" + hostile.noise()):
        assert "damaged or incomplete" in await refusal(pages, "a.pdf", broken)


async def test_a_pdf_whose_password_is_empty_is_counted(pages):
    assert await pages.count(Attachment(name="a.pdf", data=hostile.encrypted_pdf(""))) == 1


async def test_a_pdf_that_unpacks_to_a_gigabyte_is_counted_without_unpacking_it(pages):
    assert await pages.count(Attachment(name="a.pdf", data=hostile.pdf_bomb())) == 1


async def test_slides_are_counted_by_name(pages):
    import pptx

    deck = pptx.Presentation()
    for _ in range(12):
        deck.slides.add_slide(deck.slide_layouts[6])
    file = io.BytesIO()
    deck.save(file)
    assert await pages.count(Attachment(name="a.pptx", data=file.getvalue())) == 12
    assert "damaged" in await refusal(pages, "a.pptx", file.getvalue()[:5000])


SLIDE = (
    '<Relationship Id="r{0}" Target="slides/s{0}.xml" Type='
    '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/slide"/>'
)


def zipped(**parts: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


async def test_slides_of_other_names_are_counted_by_their_links(pages):
    links = "".join(SLIDE.format(number) for number in range(300))
    deck = {"ppt/_rels/presentation.xml.rels": f"<Relationships>{links}</Relationships>"}
    deck |= {f"ppt/slides/s{number}.xml": "<p:sld/>" for number in range(300)}
    assert await pages.count(Attachment(name="a.pptx", data=zipped(**deck))) == 300


async def test_a_presentation_without_slides_or_without_links_is_refused(pages):
    empty = {"ppt/_rels/presentation.xml.rels": "<Relationships/>"}
    assert "holds no slides" in await refusal(pages, "a.pptx", zipped(**empty))
    unlinked = {"ppt/slides/slide1.xml": "<p:sld/>"}
    assert "damaged" in await refusal(pages, "a.pptx", zipped(**unlinked))


async def test_a_pdf_in_front_of_a_presentation_is_no_presentation_of_one_slide(pages):
    deck = {"ppt/slides/slide1.xml": "<x/>", "ppt/_rels/presentation.xml.rels": SLIDE.format(1)}
    data = pdf_of(200) + zipped(**deck)
    for name in ("a.pptx", "a.docx", "a.epub"):
        assert "it is something else" in await refusal(pages, name, data)


@pytest.mark.parametrize("big", [False, True])
async def test_the_frames_of_a_tiff_are_counted(pages, big):
    for count in (1, 5):
        data = tiff(count, big=big)
        for name in ("a.tif", "a.TIFF"):
            assert await pages.count(Attachment(name=name, data=data)) == count


async def test_a_tiff_that_bites_its_tail_is_counted_once(pages):
    ring = b"II*\0" + struct.pack("<I", 8) + struct.pack("<HI", 0, 8)
    assert await pages.count(Attachment(name="a.tif", data=ring)) == 1
    for broken in (b"II*\0\x08\0\0\0", b"MM\0*", b"XX*\0aaaa"):
        assert "TIFF is damaged" in await refusal(pages, "a.tif", broken)


async def test_what_has_no_pages_has_none_and_starts_no_process():
    pages = Pages()
    for name, data in files.ordinary_files().items():
        if not name.endswith((".pdf", ".pptx")):
            assert await pages.count(Attachment(name=name, data=data)) is None
    assert pages._sandbox._running is None


async def test_a_machine_that_cannot_count_says_so(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ExecutionError):
        await Pages().count(Attachment(name="a.pdf", data=sample_pdf()))


@pytest.mark.parametrize(
    ("function", "sentence"), [("sleep", "too much time"), ("abort", "damaged")]
)
async def test_why_pages_could_not_be_counted_is_said(function, sentence):
    box = Sandbox(function=f"page_counters:{function}", limits=SandboxLimits(wall_s=0.2))
    pages = Pages(box)
    assert sentence in await refusal(pages, "a.pdf", sample_pdf())
    pages.close()


async def test_counting_loads_neither_the_gateway_nor_a_parser_of_other_files(pages):
    box = Sandbox(function="page_counters:modules")
    loaded = (await box.call("pdf", b"")).decode().split()
    box.close()
    assert "gateway.sandbox.pages_child" in loaded
    foreign = {"gateway.domain.offers", "gateway.sandbox.pages", "PIL", "anydoc", "asyncio"}
    assert not foreign & set(loaded)
