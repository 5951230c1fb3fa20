"""Text in PDFs that a viewer shows or hides, and files of no or another kind."""

import io

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name, String

from gateway.domain import Attachment
from gateway.errors import InvalidInput
from gateway.sandbox.pages import Pages
from gateway_documents import kinds
from gateway_documents.child import libraries, parsing
from gateway_documents.errors import REASONS, Unreadable


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


@pytest.fixture(scope="module")
def pages():
    pages = Pages()
    yield pages
    pages.close()


def pdf_of(content):
    """Return a PDF of one page, and that page, with this content."""
    pdf = pikepdf.new()
    page = pdf.add_blank_page(page_size=(400, 600)).obj
    font = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica)
    page.Resources = Dictionary(Font=Dictionary(F=pdf.make_indirect(font)))
    page.Contents = pdf.make_stream(content)
    return pdf, page


def saved(pdf, **options):
    target = io.BytesIO()
    pdf.save(target, **options)
    return target.getvalue()


def parsed(data):
    return "\n\n".join(parsing.parse("pdf", data).pages)


WORDS = b"BT /F 12 Tf 40 500 Td (Words of the page) Tj ET "


@pytest.mark.parametrize("style", [b"3 Tr", b"1 g"])
@pytest.mark.parametrize("depth", [1, 3])
def test_hidden_text_of_a_form_object_is_left_out(style, depth):
    pdf, page = pdf_of(WORDS + b"/X Do")
    resources = Dictionary(Font=page.Resources.Font)
    content = b"BT /F 12 Tf %b 40 300 Td (secret) Tj ET" % style
    for _ in range(depth):
        form = pdf.make_stream(content)
        form.Type, form.Subtype, form.BBox = Name.XObject, Name.Form, Array([0, 0, 400, 600])
        form.Resources = resources
        resources = Dictionary(Font=page.Resources.Font, XObject=Dictionary(X=form))
        content = b"/X Do"
    page.Resources = resources
    assert parsed(saved(pdf)) == "Words of the page"


def test_shown_text_of_a_form_object_stays_beside_hidden_text():
    pdf, page = pdf_of(WORDS + b"/X Do")
    form = pdf.make_stream(b"BT /F 12 Tf 40 300 Td (shown) Tj 3 Tr 40 0 Td (secret) Tj ET")
    form.Type, form.Subtype, form.BBox = Name.XObject, Name.Form, Array([0, 0, 400, 600])
    form.Resources = Dictionary(Font=page.Resources.Font)
    page.Resources.XObject = Dictionary(X=form)
    assert "shown" in parsed(saved(pdf))


def form_of(content, **more):
    """Return a PDF with fields whose values the reader has to draw."""
    pdf, page = pdf_of(content)
    values = {"Name": "Anna Beispiel", "city": "Größe Ωμ"}
    fields = Array()
    for at, (name, value) in enumerate(values.items()):
        field = Dictionary(Type=Name.Annot, Subtype=Name.Widget, FT=Name.Tx, P=page, **more)
        field.T, field.V = String(name), String(value)
        field.Rect = Array([40, 400 - 30 * at, 300, 420 - 30 * at])
        fields.append(pdf.make_indirect(field))
    page.Annots = fields
    pdf.Root.AcroForm = Dictionary(Fields=fields, NeedAppearances=True)
    return saved(pdf)


@pytest.mark.parametrize("content", [b"", WORDS])
def test_values_of_a_form_that_the_reader_has_to_draw_are_read(content):
    assert parsed(form_of(content)).endswith("Name: Anna Beispiel\n\ncity: Größe Ωμ")


def test_a_password_in_a_form_is_not_read():
    assert "Beispiel" not in parsed(form_of(WORDS, Ff=1 << 13))


def test_words_between_two_amounts_are_no_formula():
    pdf, _ = pdf_of(b"BT /F 12 Tf 40 500 Td (cost $5 <b>bold</b> $6 but $x<y$ is one) Tj ET")
    assert parsed(saved(pdf)) == "cost $5 \\<b>bold\\</b> $6 but $x<y$ is one"


@pytest.mark.parametrize("options", [{"R": 4, "aes": True}, {"R": 6}])
async def test_a_pdf_with_a_password_for_changes_only_is_counted(pages, options):
    pdf, _ = pdf_of(WORDS)
    data = saved(pdf, encryption=pikepdf.Encryption(owner="owner", **options))
    assert await pages.count(Attachment(name="a.pdf", data=data)) == 1
    assert parsed(data) == "Words of the page"
    locked = saved(pdf, encryption=pikepdf.Encryption(owner="owner", user="user", **options))
    with pytest.raises(InvalidInput, match="encrypted"):
        await pages.count(Attachment(name="a.pdf", data=locked))


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        *((f"a{extension}", b"\xef\xbb\xbf \r\n", "empty") for extension in kinds.KINDS),
        *((f"a{extension}", b"\xff\xfe\0\0\f", "empty") for extension in kinds.PICTURES),
        ("a.docx", b"PK\x05\x06" + b"\0" * 18, "unknown"),
        ("a.txt", b"PK\x03\x04 a Word file", "unknown"),
        ("a.xls", b"<table><tr><td>1</table>", "unknown"),
        ("a.txt", b"%PDF-1.4", "unknown"),
        ("a.pdf", b"junk\n%PDF-1.4\n%%EOF", "damaged"),
    ],
)
async def test_the_count_of_pages_names_one_reason(pages, name, data, reason):
    with pytest.raises(InvalidInput) as refused:
        await pages.count(Attachment(name=name, data=data))
    assert [one for one in REASONS if one in str(refused.value)] == [reason]


WEB_ARCHIVE = """From: x
MIME-Version: 1.0
Content-Type: multipart/related;
 boundary="b"

--b
Content-Type: text/html

<p>Hello</p>
--b--"""


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("\ufeff{\\rtf1 hello}", "name it .rtf"),
        ("\r\n {\\rtf1 hello}", "name it .rtf"),
        (WEB_ARCHIVE, "save it as HTML"),
    ],
)
@pytest.mark.parametrize("kind", ["text", "csv", "html"])
def test_rich_text_and_web_archives_are_no_text(kind, text, way_out):
    with pytest.raises(Unreadable, match=way_out):
        parsing.parse(kind, text.encode())
