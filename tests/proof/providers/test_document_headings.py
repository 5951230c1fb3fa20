"""Headings of PDFs: their fonts, lines, tags and levels."""

import documents_pdf as pdf
import pytest

from gateway_documents.child import libraries, parsing

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
