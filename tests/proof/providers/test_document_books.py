"""OpenDocument files, rich text and EPUB: hidden parts, headings, notes, digits and values."""

import pytest
from documents_files import archive

from gateway_documents.child import libraries, parsing
from gateway_documents.errors import Unreadable

NAMES = "urn:oasis:names:tc:opendocument:xmlns:"
SPACES = " ".join(
    f'xmlns:{short}="{NAMES}{name}:1.0"'
    for short, name in {
        **{name: name for name in ("office", "text", "table", "style", "presentation")},
        "draw": "drawing",
        "fo": "xsl-fo-compatible",
    }.items()
)
LATIN = '<?xml version="1.0" encoding="iso-8859-1"?><html><body><p>Café</p></body></html>'
HIDDEN = '<style:style style:name="H" style:family="{}"><style:text-properties text:display="none"/></style:style>'  # noqa: E501 - one element


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(kind, data):
    return "\n\n".join(parsing.parse(kind, data).pages).strip()


def notes(kind, data):
    return " ".join(parsing.parse(kind, data).notes)


def opened(kind, body, styles="", named=""):
    """Return an OpenDocument file with these automatic and named styles."""
    members = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "META-INF/manifest.xml": f'<m:manifest xmlns:m="{NAMES}manifest:1.0"/>',
        "content.xml": f"<office:document-content {SPACES}><office:automatic-styles>{styles}"
        f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>",
    }
    if named:
        members["styles.xml"] = f"<office:document-styles {SPACES}>{named}</office:document-styles>"
    return archive(members)


def text(words, style=""):
    return f'<text:p text:style-name="{style}">{words}</text:p>'


@pytest.mark.parametrize(
    "hidden",
    [
        text("secret", "H"),
        text('Seen <text:span text:style-name="H">secret</text:span>'),
        f'<text:section text:display="none">{text("secret")}</text:section>',
        text('<text:hidden-text text:is-hidden="true">secret</text:hidden-text>'),
    ],
)
def test_hidden_text_of_an_open_document_is_left_out(hidden):
    styles = HIDDEN.format("text") + HIDDEN.format("paragraph")
    data = opened("text", text("Seen") + hidden, styles)
    assert "secret" not in parsed("odt", data)
    assert "Seen" in parsed("odt", data)
    assert "Hidden text" in notes("odt", data)


def test_paragraphs_are_headings_by_their_style():
    own = (
        '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
        '<style:style style:name="P2" style:family="paragraph" style:default-outline-level="3"/>'
    )
    body = text("One", "P1") + text("Two", "Heading_20_2") + text("Three", "P2") + text("Words")
    named = '<style:style style:name="Title" style:family="paragraph"/>'
    assert parsed("odt", opened("text", body, own, named)).split("\n\n") == [
        *("# One", "## Two", "### Three", "Words"),
    ]


def test_comments_ruby_and_shapes_do_not_glue_words():
    shape = f"<draw:custom-shape>{text('In a shape')}</draw:custom-shape>"
    comment = f"<office:annotation>{text('Remark')}</office:annotation>"
    base, reading = (
        "<text:ruby-base>漢字</text:ruby-base>",
        "<text:ruby-text>かんじ</text:ruby-text>",
    )
    ruby = f"<text:ruby>{base}{reading}</text:ruby>"
    data = opened("text", text(f"One{comment} two{shape}") + text(ruby))
    assert parsed("odt", data).split("\n\n") == ["One two", "In a shape", "漢字 (かんじ)"]
    assert "Comments" in notes("odt", data)


def test_headers_of_an_open_document_are_read_once():
    pages = "".join(
        f"<style:master-page><style:header>{text('Head of all')}</style:header><style:footer>"
        f"{text('Page <text:page-number>1</text:page-number>')}</style:footer></style:master-page>"
        for _ in range(2)
    )
    assert parsed("odt", opened("text", text("Words"), named=pages)) == "Head of all\n\nWords"


def test_raised_digits_of_an_open_document_are_kept():
    styles = "".join(
        f'<style:style style:name="{name}" style:family="text"><style:text-properties '
        f'style:text-position="{name} 58%"/></style:style>'
        for name in ("super", "sub")
    )
    body = text('x<text:span text:style-name="super">2</text:span> H<text:span text:style-name="sub">2</text:span>O')  # fmt: skip # noqa: E501 - one paragraph
    assert parsed("odt", opened("text", body, styles)) == "x² H₂O"


def test_a_hidden_slide_of_an_open_presentation_is_left_out():
    styles = (
        '<style:style style:name="H" style:family="drawing-page"><style:drawing-page-properties '
        'presentation:visibility="hidden"/></style:style>'
    )
    frame = "<draw:frame><draw:text-box>{}</draw:text-box></draw:frame>"
    slides = "".join(
        f'<draw:page draw:style-name="{style}">{frame.format(text(words))}</draw:page>'
        for words, style in (("secret", "H"), ("Shown", ""))
    )
    data = opened("presentation", slides, styles)
    assert parsed("odp", data) == "Shown"
    assert "Hidden slides, left out: 1." in notes("odp", data)


def cell(words, kind="string", value=""):
    return f'<table:table-cell office:value-type="{kind}" {value}>{text(words)}</table:table-cell>'


def test_numbers_of_an_open_workbook_are_shown_in_their_format():
    row = "".join(
        (
            cell("25.60 %", "percentage", 'office:value="0.256"'),
            cell("1.234,50 €", "currency", 'office:value="1234.5"'),
            cell("01234", "float", 'office:value="1234"'),
            cell("27:30", "time", 'office:time-value="PT27H30M00S"'),
            cell("1.2.26", "date", 'office:date-value="2026-02-01"'),
        )
    )
    table = f'<table:table table:name="S"><table:table-row>{row}</table:table-row></table:table>'
    assert "| 25.60 % | 1.234,50 € | 01234 | 27:30 | 2026-02-01 |" in parsed(
        "ods", opened("spreadsheet", table)
    )


def test_hidden_cells_of_an_open_workbook_are_left_out():
    columns = (
        '<table:table-column table:number-columns-repeated="2"/>'
        '<table:table-column table:visibility="collapse" table:number-columns-repeated="2"/>'
    )
    repeated = cell("a").replace("cell ", 'cell table:number-columns-repeated="3" ', 1)
    rows = (
        f"<table:table-row>{repeated}{cell('secret')}{cell('z')}</table:table-row>"
        f'<table:table-row table:visibility="filter">{cell("secret")}</table:table-row>'
    )
    data = opened("spreadsheet", f'<table:table table:name="S">{columns}{rows}</table:table>')
    assert parsed("ods", data) == "## S\n\n| a | a | z |\n| --- | --- | --- |"
    assert "Hidden rows and columns" in notes("ods", data)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (rb"seen {\v secret} \v secret\v0  too", "seen too"),
        (rb"kept {\deleted gone}", "kept"),
        (rb"{\shp{\*\shpinst{\shptxt Box\par}}{\shprslt Box}}", "Box"),
        (rb"x{\super 2} H{\sub 2}O", "x² H₂O"),
        (rb"{\uc0 x{\super 2}}{\v {\u233 ?}}", "x²"),
        (rb"a{\pict\bin3 {\v}b", "ab"),
    ],
)
def test_rich_text_is_read_as_it_is_shown(body, shown):
    data = rb"{\rtf1\ansi " + body + rb"\par}"
    assert " ".join(parsed("rtf", data).split()) == shown
    assert ("Hidden" in notes("rtf", data)) == any(
        word in body for word in (b"secret", b"gone", b"233")
    )


def book(body, **more):
    """Return a book of one chapter, which may be no XML."""
    chapter = body if isinstance(body, bytes) else f"<html><body>{body}</body></html>"
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="book.opf"/>'
            "</rootfiles></container>",
            "book.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>'
            'Title</dc:title></metadata><manifest><item id="one" href="one.xhtml"/></manifest>'
            '<spine><itemref idref="one"/></spine></package>',
            "one.xhtml": chapter,
            **more,
        }
    )


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("<p hidden='hidden'>secret</p><p>Seen</p>", "Seen"),
        ("<p>Seen<span style='color:red;display: none'>secret</span> too</p>", "Seen too"),
        ("<p>10<sup>6</sup> H<sub>2</sub>O</p>", "10⁶ H₂O"),
        ("<p><ruby>漢<rt>かん</rt></ruby></p>", "漢 (かん)"),
        ("<dl><dt>Term</dt><dd>What it is</dd></dl>", "Term\n\nWhat it is"),
        ("<p>unclosed <b>bold<p>next & more é", "unclosed **bold**\n\nnext & more é"),
        (LATIN.encode("latin-1"), "Café"),
    ],
)
def test_a_chapter_is_read_as_it_is_shown(body, shown):
    assert parsed("epub", book(body)).removeprefix("# Title").strip() == shown


def test_a_book_of_pictures_has_no_text_and_an_encrypted_one_is_named_so():
    with pytest.raises(Unreadable, match=r"^The file contains no text\.$"):
        parsing.parse("epub", book("<img src='a.png'/>"))
    locked = (
        '<encryption><EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherData>'
        '<CipherReference URI="{}"/></CipherData></EncryptedData></encryption>'
    )
    name = "META-INF/encryption.xml"
    with pytest.raises(Unreadable, match="encrypted"):
        parsing.parse("epub", book("<p>x</p>", **{name: locked.format("one.xhtml")}))
    assert "x" in parsed("epub", book("<p>x</p>", **{name: locked.format("font.otf")}))
