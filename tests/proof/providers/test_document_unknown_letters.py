"""PDFs whose fonts do not name their letters: numbers of glyphs are never returned as text."""

import pytest
from documents_raw_pdf import raw_pdf, stream, text

from gateway_documents.child import libraries, parsing
from gateway_documents.child.parsed import has_words

DESCRIPTOR = "<</Type/FontDescriptor/FontName/{}/Flags 4/FontBBox[0 0 1000 1000]/ItalicAngle 0"
DESCRIPTOR += "/Ascent 800/Descent -200/CapHeight 700/StemV 80>>"
SENTENCE = "Lease agreement between Alice Miller and Bob Jones. The rent is 500 euros a month."
GOOD = "These words are in a font that names its letters, and they stay."
NOTE = "{}: text in a font that does not name its letters was left out."


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def fonts(name="ABCDEF+Own", more=""):
    """Return a composite font with codes of glyphs, and without the names of its letters."""
    return {
        50: f"<</Type/Font/Subtype/Type0/BaseFont/{name}/Encoding/Identity-H"
        f"/DescendantFonts[51 0 R]{more}>>",
        51: f"<</Type/Font/Subtype/CIDFontType2/BaseFont/{name}/CIDSystemInfo<</Registry(Adobe)"
        "/Ordering(Identity)/Supplement 0>>/DW 600/FontDescriptor 52 0 R>>",
        52: DESCRIPTOR.format(name),
    }


def glyphs(words, shift=-29, step=1):
    """Return the codes of letters in a font; 29 before those of ASCII, as most programs write."""
    codes = (max((ord(char) + shift) * step, 1) % 65_536 for char in words)
    return f"<{''.join(f'{code:04X}' for code in codes)}>"


def bad(words=SENTENCE, height=700, **options):
    return text(72, height, glyphs(words, **options), font="F9")


def parsed(*pages, more=None, **options):
    return parsing.parse("pdf", raw_pdf(pages, more=more or fonts(), **options))


@pytest.fixture(autouse=True)
def second_font(monkeypatch):
    monkeypatch.setattr("documents_raw_pdf.FONTS", "/F1 3 0 R/F9 50 0 R")


@pytest.mark.parametrize(
    "options", [{}, {"shift": -28}, {"shift": -31}, {"shift": 3}, {"shift": 500}, {"step": 7}]
)
def test_numbers_of_glyphs_are_no_text(options):
    found = parsed(bad(**options))
    assert not any(map(has_words, found.pages))
    assert found.textless == {0: True}
    assert not found.has_text


def test_one_bad_font_of_several_gives_a_note_and_the_rest():
    found = parsed(f"{text(72, 750, GOOD)} {bad('Lease agreement of Alice.')}")
    assert found.pages == [GOOD]
    assert found.notes == (NOTE.format("Page 1"),)
    assert (found.textless, found.has_text) == ({}, True)


def test_the_note_names_the_pages():
    mixed = f"{text(72, 750, GOOD)} {bad('Lease agreement of Alice.')}"
    found = parsed(mixed, text(72, 700, GOOD), mixed, bad())
    assert found.notes == (NOTE.format("Pages 1 and 3"),)
    assert found.textless == {3: True}
    assert found.pages[1] == GOOD


def test_a_page_of_bad_letters_with_a_good_number_is_read_as_a_picture():
    found = parsed(f"{bad()} {text(300, 40, 'Page 1')}", text(72, 700, GOOD))
    assert found.textless == {0: True}
    assert (found.pages, found.has_text) == (["Page 1", GOOD], True)


def test_codes_that_are_letters_are_text():
    found = parsed(bad(shift=0))
    assert (found.notes, found.textless, found.has_text) == ((), {}, True)


def test_a_named_font_stays():
    lines = "".join(f"<{ord(char) - 29:04X}> <{ord(char):04X}>\n" for char in sorted(set(SENTENCE)))
    names = f"1 begincodespacerange <0000> <FFFF> endcodespacerange\n{len(set(SENTENCE))} "
    cmap = stream(f"begincmap\n{names}beginbfchar\n{lines}endbfchar\nendcmap")
    found = parsed(bad(), more={**fonts(more="/ToUnicode 53 0 R"), 53: cmap})
    assert (found.pages, found.notes) == ([SENTENCE], ())


def test_a_font_that_names_no_letter_it_uses_is_unknown():
    cmap = stream("begincmap 1 beginbfchar\n<FFF0> <0041>\nendbfchar endcmap")
    found = parsed(bad(), more={**fonts(more="/ToUnicode 53 0 R"), 53: cmap})
    assert (found.pages, found.textless) == ([""], {0: True})


def test_numbers_of_glyphs_beside_a_lost_page_are_no_text():
    found = parsed(text(72, 700, GOOD), None, bad())
    assert not has_words(found.pages[2])
    assert 2 in found.textless
