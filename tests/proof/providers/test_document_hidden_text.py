"""Text that a PDF, a Word file or a presentation hides is left out, and the result says so."""

import io

import documents_layers as layers
import pytest
from documents_files import WORD, archive, office

from gateway_documents.child import libraries, parsing
from gateway_documents.kinds import recognise


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


SEEN = "BT /F1 11 Tf 72 700 Td (Seen) Tj ET "


def line(text, before=""):
    return f"{before} BT /F1 11 Tf 72 650 Td ({text}) Tj ET "


PICTURE = "q 400 0 0 40 50 640 cm BI /W 1 /H 1 /BPC 8 /CS /G ID 0 EI Q "


@pytest.mark.parametrize(
    "hidden",
    [
        line("secret", "1 1 1 rg"),
        line("secret", "1 1 1 rg 0 0 595 842 re f"),
        line("secret", "3 Tr"),
        f"/OC /P1 BDC {line('secret')} EMC",
        "BT /F1 11 Tf 72 50 Td (secret below the crop box) Tj ET",
    ],
)
def test_text_that_a_pdf_hides_is_left_out(hidden):
    found = parsing.parse("pdf", layers.write(SEEN + hidden, layer_is_on=False))
    assert found.pages == ["Seen"]
    assert bool(found.notes) == ("crop box" not in hidden)


@pytest.mark.parametrize(
    "shown",
    [
        line("words", "0 0 0.5 rg 50 640 400 40 re f 1 1 1 rg"),
        line("words", "0.9 g"),
        PICTURE + line("words", "3 Tr"),
        line("words", "0 0 1 RG 50 640 400 40 re S 3 Tr"),
        line("words", "1 1 1 rg 0 0 0 RG 2 Tr"),
        f"/OC /P1 BDC {line('words')} EMC",
        "BT /F1 11 Tf 72 650 Td (words) Tj 0.3 0 Td (words) Tj ET",
        "q 50 640 400 40 re W n /S1 sh Q " + line("words", "1 1 1 rg"),
        "/Pattern cs /G1 scn 50 640 400 40 re f " + line("words", "1 1 1 rg"),
        line("words", "/Pattern cs /G1 scn"),
        line("words") + "BT 1 1 1 rg /F1 11 Tf 72 600 Td ( ) Tj ET",
    ],
)
def test_text_that_a_pdf_shows_or_that_was_recognised_in_a_picture_is_kept_once(shown):
    found = parsing.parse("pdf", layers.write(SEEN + shown))
    assert found.pages[0].startswith("Seen")
    assert found.pages[0].count("words") == 1
    assert found.notes == ()


def test_hidden_text_stays_where_its_removal_would_lose_letters_of_a_drawn_font():
    drawn = "BT /F3 12 Tf 72 600 Td (abc) Tj ET "
    found = parsing.parse("pdf", layers.write(SEEN + drawn + line("secret", "1 1 1 rg")))
    assert "abc" in found.pages[0]
    assert found.notes == ()


def test_a_page_of_hidden_text_only_has_no_text():
    found = parsing.parse("pdf", layers.write(line("secret", "3 Tr")))
    assert not found.has_text
    assert found.textless == {0: False}


OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
SPACES = f'xmlns:w="{WORD}" xmlns:r="{OFFICE}"'


def run(text, properties=""):
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def part(name, content):
    return f"<w:{name} {SPACES}>{content}</w:{name}>"


def document(body):
    return part("document", f"<w:body>{body}</w:body>")


def relations(**targets):
    """Return the relations of a part: a file by the kind of the relation."""
    links = "".join(
        f'<Relationship Id="{kind}" Type="{OFFICE}/{kind.rstrip("0123456789")}" Target="{target}"/>'
        for kind, target in targets.items()
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'


HIDDEN = f"<w:p>{run('Seen')}{run('secret', '<w:vanish/>')}</w:p>"


@pytest.mark.parametrize("name", ["word/document.xml", "word/document2.xml", "word/a/main.xml"])
def test_hidden_words_are_left_out_whatever_the_main_part_is_called(name):
    found = parsing.parse("docx", office(name, document(HIDDEN)))
    assert found.pages == ["Seen"]
    assert found.notes == ("Hidden text was left out.",)


def test_a_word_file_is_recognised_by_its_main_part_in_any_folder():
    types = (
        f'<Types xmlns="{PACKAGE}/content-types"><Override PartName="/text/main.xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
        "</Types>"
    )
    data = archive(
        {
            "[Content_Types].xml": types,
            "_rels/.rels": relations(officeDocument="/text/main.xml"),
            "text/main.xml": document(HIDDEN),
        }
    )
    assert recognise(".docx", data) == "docx"
    assert parsing.parse("docx", data).pages == ["Seen"]


def test_words_hidden_by_a_style_are_left_out_also_by_one_that_it_is_based_on():
    styles = part(
        "styles",
        '<w:style w:styleId="Base"><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:styleId="Derived"><w:basedOn w:val="Base"/></w:style>'
        '<w:style w:styleId="Shown"><w:basedOn w:val="Base"/><w:rPr><w:vanish w:val="0"/></w:rPr>'
        "</w:style>",
    )
    derived, shown = (f'<w:rStyle w:val="{name}"/>' for name in ("Derived", "Shown"))
    body = (
        f"<w:p>{run('Seen')}{run('secret', derived)}</w:p>"
        f'<w:p><w:pPr><w:pStyle w:val="Base"/></w:pPr>{run("secret")}</w:p>'
        f"<w:p>{run('too', shown)}</w:p>"
    )
    data = office(
        "word/document.xml",
        document(body),
        **{
            "word/styles.xml": styles,
            "word/_rels/document.xml.rels": relations(styles="styles.xml"),
        },
    )
    assert parsing.parse("docx", data).pages == ["Seen\n\ntoo"]


def test_tracked_changes_are_read_as_accepted():
    body = (
        f"<w:p>{run('Keep ')}<w:ins>{run('new')}</w:ins><w:del><w:r><w:delText>old</w:delText>"
        f"</w:r></w:del><w:moveFrom>{run('away')}</w:moveFrom><w:moveTo>{run(' here')}</w:moveTo>"
        "</w:p>"
    )
    [text] = parsing.parse("docx", office("word/document.xml", document(body))).pages
    assert text.replace(" ", "") == "Keepnewhere"


def test_headers_and_footers_are_read_once_and_comments_are_mentioned():
    references = (
        '<w:sectPr><w:headerReference w:type="default" r:id="header1"/>'
        '<w:footerReference w:type="default" r:id="footer1"/>'
        '<w:footerReference w:type="first" r:id="footer2"/></w:sectPr>'
    )
    page = f'<w:p>{run("Page ")}<w:fldSimple w:instr="PAGE">{run("1")}</w:fldSimple></w:p>'
    data = office(
        "word/document.xml",
        document(f"<w:p>{run('Body')}</w:p>{references}"),
        **{
            "word/header1.xml": part("hdr", f"<w:p>{run('Mill Ltd')}</w:p>"),
            "word/footer1.xml": part("ftr", f"<w:p>{run('IBAN DE12')}</w:p>"),
            "word/footer2.xml": part("ftr", page),
            "word/comments.xml": part("comments", f"<w:comment><w:p>{run('x')}</w:p></w:comment>"),
            "word/_rels/document.xml.rels": relations(
                header1="header1.xml",
                footer1="footer1.xml",
                footer2="footer2.xml",
                comments="comments.xml",
            ),
        },
    )
    found = parsing.parse("docx", data)
    assert found.pages == ["Mill Ltd\n\nBody\n\nIBAN DE12"]
    assert found.notes == ("Comments were left out.",)


def test_hidden_slides_and_shapes_are_left_out_and_grouped_ones_kept():
    import pptx as library

    presentation = library.Presentation()
    shown, hidden = (presentation.slides.add_slide(presentation.slide_layouts[6]) for _ in range(2))
    group = shown.shapes.add_group_shape().shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "grouped"
    shape = shown.shapes.add_textbox(0, 0, 9, 9)
    shape.text_frame.text = "secret shape"
    shape._element.nvSpPr.cNvPr.set("hidden", "1")
    hidden.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "secret slide"
    hidden.notes_slide.notes_text_frame.text = "secret notes"
    hidden._element.set("show", "0")
    presentation.save(file := io.BytesIO())
    found = parsing.parse("pptx", file.getvalue())
    assert found.pages == ["grouped", ""]
    assert list(found.notes) == ["Hidden slides, left out: 1.", "Hidden shapes were left out."]
