"""Headings of PDFs: their fonts, lines, tags and levels."""

import documents_pdf as pdf
import pytest
from liteparse import AnnotationRect, LayoutBlock, ParsedPage, TextItem

from gateway_documents.child import libraries, parsing
from gateway_documents.child.pdf.layout import headings, styles

BODY = "The harbour collects a fee from each boat"


@pytest.fixture(scope="module", autouse=True)
def warm():
    libraries.load_lazy_parts()


def parsed(data):
    return "\n\n".join(parsing.parse("pdf", data).pages)


def with_stems(data, regular, bold):
    """Return a PDF whose fonts have names and stem widths of their own."""
    for base, name, stem in (("Helvetica", "Quay-Regular", regular), ("B", "Quay-Bold", bold)):
        font = b"/BaseFont /Helvetica-Bold " if base == "B" else b"/BaseFont /Helvetica "
        about = f"<< /Type /FontDescriptor /FontName /{name} /Flags 32 /StemV {stem} >>"
        new = f"/BaseFont /{name} /FontDescriptor {about} "
        data = data.replace(font, new.encode())
    return data


@pytest.mark.parametrize("stem", [80, 125])
def test_a_wide_stem_alone_makes_no_font_bold(stem):
    page = pdf.Page()
    for section, y in (("Fees", 760), ("Berths", 680), ("Waste", 600)):
        page.text(60, y, section, font=pdf.BOLD)
        page.text(60, y - 20, f"{BODY} in the {section.lower()} office.")
        page.text(60, y - 34, f"{BODY} that stays for longer than a day.")
    markdown = parsed(with_stems(pdf.write([page]), stem, 172))
    assert [line for line in markdown.split("\n") if line.startswith("#")] == [
        "# Fees",
        "# Berths",
        "# Waste",
    ]
    assert "**" not in markdown


def page_of(*lines):
    """Return a page of lines: the text, its font, and the distance from the line above."""
    page, y = pdf.Page(), 780.0
    for text, font, pitch in lines:
        y -= pitch
        page.text(60, y, text, font=font)
    return pdf.write([page])


def headings_of(data):
    return [line for line in parsed(data).split("\n") if line.startswith("#")]


LONG = f"{BODY} that stays for longer than a day, and a lower fee from"


def test_a_bold_line_between_lines_of_the_body_is_a_heading():
    data = page_of(
        (LONG, pdf.REGULAR, 14),
        ("boats of the village.", pdf.REGULAR, 14),
        ("Fees for guests", pdf.BOLD, 14),
        (LONG, pdf.REGULAR, 14),
        ("each other boat.", pdf.REGULAR, 14),
    )
    assert headings_of(data) == ["# Fees for guests"]


def test_a_bold_line_that_the_next_line_continues_is_no_heading():
    bold = "The harbour office collects a fee from each boat that stays for long, and from"
    data = page_of(
        (LONG, pdf.REGULAR, 14),
        ("boats of the village.", pdf.REGULAR, 14),
        (bold, pdf.BOLD, 14),
        (
            "each boat that only lands its fish in the morning.",
            pdf.REGULAR,
            14,
        ),
        (LONG, pdf.REGULAR, 14),
    )
    assert headings_of(data) == []


def test_a_heading_of_two_lines_is_one_heading():
    first = "3. Fees, deposits and other payments of guests that stay for longer than"
    data = page_of(
        (LONG, pdf.REGULAR, 14),
        ("boats of the village.", pdf.REGULAR, 14),
        (first, pdf.BOLD, 30),
        ("one day in the harbour", pdf.BOLD, 14),
        (LONG, pdf.REGULAR, 22),
        ("each other boat.", pdf.REGULAR, 14),
    )
    assert headings_of(data) == [f"# {first} one day in the harbour"]


def test_code_keeps_its_indentation():
    page = pdf.Page()
    for at in range(6):
        page.text(60, 780 - 14 * at, f"{BODY} that stays for longer than a day.")
    for at, line in enumerate(("def fee(boat):", "    if boat.is_guest:", "        return 12")):
        spaces = len(line) - len(line.lstrip())
        page.text(60 + 7.2 * spaces, 660 - 14 * at, line.strip(), font=pdf.BOLD, size=12)
    data = pdf.write([page]).replace(b"/Helvetica-Bold", b"/Courier")
    assert "\ndef fee(boat):\n    if boat.is_guest:\n        return 12\n```" in parsed(data)


def test_a_bold_line_that_fills_its_line_is_the_begin_of_the_paragraph():
    first = "Billing. The harbour collects a fee from each guest in the month after the stay."
    data = page_of(
        (LONG, pdf.REGULAR, 14),
        ("boats of the village.", pdf.REGULAR, 14),
        (first, pdf.BOLD, 30),
        (f"Payments of {LONG}", pdf.REGULAR, 14),
        ("boats of the village.", pdf.REGULAR, 14),
    )
    assert headings_of(data) == []


def block_page(*items):
    """Return the blocks of a page whose lines are `(text, top, font, size)`, one block each."""
    texts = [
        TextItem(text, 60, top, 5.0 * len(text), size, font_name=font, font_size=size)
        for text, top, font, size in items
    ]
    body = [TextItem(BODY, 60, 400, 200, 10.0, font_name="Quay", font_size=10.0)] * 9
    blocks = [
        LayoutBlock(
            kind="heading" if "Bold" in one.font_name else "paragraph",
            text=one.text,
            bbox=AnnotationRect(one.x, one.y, one.width, one.height),
        )
        for one in texts
    ]
    page = ParsedPage(1, 600, 800, "", text_items=[*texts, *body])
    return headings.refine(page, blocks, styles.body_style([page]))


@pytest.mark.parametrize(
    ("top", "kind"), [(30, "paragraph"), (120, "heading")], ids=["running header", "heading"]
)
def test_a_small_bold_line_at_the_top_far_from_the_text_is_a_running_header(top, kind):
    found = block_page(("Harbour rules", top, "Quay-Bold", 10.0), (BODY, 160, "Quay", 10.0))
    assert found[0].kind == kind


@pytest.mark.parametrize(
    ("text", "top", "size", "kind"),
    [
        ("Harbour rules", 120, 16.0, "heading"),
        ("Harbour rules", 120, 11.0, "paragraph"),
        ("Harbour rules", 20, 16.0, "paragraph"),
        ("The harbour has rules.", 120, 16.0, "paragraph"),
        ("a = b", 120, 16.0, "paragraph"),
    ],
)
def test_a_paragraph_in_large_letters_is_a_heading(text, top, size, kind):
    found = block_page((text, top, "Quay", size), (BODY, 160, "Quay", 10.0))
    assert [one.kind for one in found] == [kind, "paragraph"]


@pytest.mark.parametrize(("text", "kind"), [("Guests", "heading"), ("Guests,", "paragraph")])
def test_a_line_that_ends_with_a_comma_is_no_heading(text, kind):
    found = block_page((text, 120, "Quay-Bold", 10.0), (BODY, 160, "Quay", 10.0))
    assert found[0].kind == kind


def test_lines_behind_drawn_bullets_are_list_items():
    page = pdf.Page()
    page.text(60, 760, "The harbour collects fees from:")
    for y, left, text in (
        (740, 80, "boats of guests"),
        (726, 80, "boats that stay for longer than a day,"),
        (712, 80, "and that leave later"),
        (698, 100, "boats of the village"),
        (684, 60, "All others are free."),
    ):
        page.text(left, y, text)
        if "later" not in text and "others" not in text:
            page.operators.append(f"{left - 14} {y + 2} 4 4 re f")
    assert parsed(pdf.write([page])) == (
        "The harbour collects fees from:\n\n"
        "- boats of guests\n"
        "- boats that stay for longer than a day, and that leave later\n"
        "  - boats of the village\n\n"
        "All others are free."
    )
