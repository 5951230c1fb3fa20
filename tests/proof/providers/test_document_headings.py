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
