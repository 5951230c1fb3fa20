"""The Markdown of each format shows the words of the file, and takes none of them for its signs."""

import html
import io
import zlib
from xml.sax.saxutils import escape

import bs4
import documents_pdf as pdf
import pytest
from documents_files import WORD, office

from gateway_documents.child import escaping, libraries, parsing
from gateway_documents.child.html import style_sheets


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(kind, data):
    data = data if isinstance(data, bytes) else data.encode()
    return "\n\n".join(parsing.parse(kind, data).pages)


def notes(kind, data):
    return " ".join(parsing.parse(kind, data.encode()).notes)


def word(*paragraphs):
    body = "".join(
        f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'
        for text in paragraphs
    )
    return office(
        "word/document.xml", f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    )


def slides(*paragraphs):
    import pptx as library

    presentation = library.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    frame = slide.shapes.add_textbox(0, 0, 500, 500).text_frame
    for text in paragraphs:
        frame.add_paragraph().text = text
    file = io.BytesIO()
    presentation.save(file)
    return file.getvalue()


BLOCKS = ["# no heading", "- no item", "+ no item", "1. no item", "2) no item", "> no quote"]
INLINE = ["*no emphasis*", "_none_", "`no` `code`", "<b>no tag</b>", "&amp; no entity", "~~no~~"]
PLAIN = ["5 * 3 * 2", "snake_case_name", "a < b > c", "C# and AT&T", "-5 degrees", "#tag", "3.5"]


@pytest.mark.parametrize(("kind", "write"), [("docx", word), ("pptx", slides)])
def test_office_files_escape_signs_and_leave_plain_text(kind, write):
    text = parsed(kind, write(*BLOCKS, *INLINE, *PLAIN)).splitlines()
    assert not set(text) & {*BLOCKS, *INLINE}
    assert {*PLAIN} - set(text) == set()


def test_a_page_escapes_signs_and_leaves_plain_text():
    every = [*BLOCKS, *INLINE, *PLAIN]
    page = "".join(f"<p>{html.escape(text)}</p>" for text in every)
    lines = parsed("html", page).split("\n\n")
    assert lines == [escaping.paragraph(text) for text in every]
    assert not set(lines) & {*BLOCKS, *INLINE}
    assert lines[-len(PLAIN) :] == PLAIN


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("# x", "\\# x"),
        ("2024. a year", "2024\\. a year"),
        ("a | b\n--- | ---", "a | b\n\\--- | ---"),
        ("x\n===", "x\n\\==="),
        ("[1]: http://a.example", "\\[1]: http://a.example"),
        ("[x](y)", "[x\\](y)"),
        ("2*3*4 = 24", "2\\*3\\*4 = 24"),
        ("f(*args, **more)", "f(*args, **more)"),
        ("Name: ____ Date: ____", "Name: ____ Date: ____"),
        ("it`s", "it`s"),
        ("C:\\dir\\_x", "C:\\dir\\\\_x"),
        ("end\\", "end\\\\"),
        ("x < y", "x < y"),
        ("<x", "<x"),
        ("&lt; &#9; &#xA0; AT&T; R&D;", "\\&lt; \\&#9; \\&#xA0; AT&T; R&D;"),
        ("https://a.edu/~bob and https://a.edu/~al", "https://a.edu/~bob and https://a.edu/~al"),
        ("(*a*), ~~b~~", "(\\*a\\*), \\~\\~b\\~\\~"),
        ('a_"b"_c', 'a_"b"_c'),
        ("_(x)_ a_b_", "\\_(x)\\_ a_b\\_"),
    ],
)
def test_only_signs_that_would_change_the_text_are_escaped(text, escaped):
    assert escaping.paragraph(text) == escaped


@pytest.mark.parametrize("sign", ["*a ", "_a", "[x", "`", "\\", "- ", "<a", "#", "1", "[a\n"])
def test_escaping_takes_linear_time(sign):
    # Quadratic time would be minutes.
    assert sign.strip() in escaping.paragraph(sign * 200_000).replace("\\", "") or sign == "\\"


def pdf_of(*lines):
    """Return a PDF whose lines are paragraphs."""
    shown = (line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") for line in lines)
    content = "".join(
        f"BT /F1 11 Tf 72 {780 - 60 * at} Td ({line}) Tj ET\n" for at, line in enumerate(shown)
    )
    return pdf.write_contents([zlib.compress(content.encode("cp1252"))])


def test_a_pdf_escapes_signs_and_leaves_plain_text():
    every = [
        "# no heading",
        "> no quote",
        "`no` `code`",
        "<b>no tag</b>",
        "&amp; no entity",
        *PLAIN,
    ]
    lines = parsed("pdf", pdf_of(*every)).split("\n\n")
    assert lines == [
        *("\\# no heading", "\\> no quote", "\\`no\\` \\`code\\`"),
        *("\\<b>no tag\\</b>", "\\&amp; no entity", *PLAIN),
    ]


def test_cells_escape_signs_but_not_those_of_blocks():
    table = 'h,i\n*a*,# x\n"<b>","a|b\\|c"\n'
    rows = parsed("csv", table).splitlines()
    assert rows[2] == "| \\*a\\* | # x |"
    assert rows[3] == "| \\<b> | a\\|b\\\\\\|c |"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p><b>Name</b> - a name</p>", "**Name** - a name"),
        ("<p><span># x</span></p>", "\\# x"),
        ("<p>a<br># x</p>", "a  \n\\# x"),
        ("<p>a\n- b</p>", "a - b"),
        ("<pre>*x*\n# y</pre>", "```\n*x*\n# y\n```"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        ("<table><tr><td># x<td>a|b<tr><td>1<td>2</table>", None),
        ("<p>x <img src='a b.png' alt='a [b]\nc'>", "x ![a \\[b\\] c](a%20b.png)"),
    ],
)
def test_signs_count_where_a_browser_shows_text(page, text):
    expected = text or "| # x | a\\|b |\n| --- | --- |\n| 1 | 2 |"
    assert parsed("html", page) == expected


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("1,5\n2,5\n3,75 %\n", ["1,5", "2,5", "3,75 %"]),
        ("Width\n1,5\n2,5\n", ["Width", "1,5", "2,5"]),
        ("1,2\n1999,1200\n", ["1 | 2", "1999 | 1200"]),
        ("1,2\n3,4\n", ["1 | 2", "3 | 4"]),
        ("Price\n1.200,50 €\n-2,5 €\n", ["Price", "1.200,50 €", "-2,5 €"]),
        ("x,y\n1,5\n2,5\n", ["x | y", "1 | 5", "2 | 5"]),
        ('a,b\n"x,1\ny,2\n', ["a | b", '"x | 1', "y | 2"]),
        ('a,b\n1,"x\ny,2\n3,"4, 5"\n', ["a | b", '1 | "x', "y | 2", "3 | 4, 5"]),
        ('a,b\n1,"say "hi" now"\n', ["a | b", '1 | say "hi" now']),
        ('a,b\n"x \\"q\\" y",2\n', ["a | b", 'x "q" y | 2']),
        ('a, "b, c", d\n1, "2, 3", 4\n', ["a | b, c | d", "1 | 2, 3 | 4"]),
        ('size,n\n5",1\n', ["size | n", '5" | 1']),
        ("sep=;\ra;b\r1;2\r", ["a | b", "1 | 2"]),
        ("a,b,c\n1,2\n1,2,3,4\n", ["a | b | c | ", "1 | 2 |  | ", "1 | 2 | 3 | 4"]),
    ],
)
def test_a_csv_keeps_its_cells_whatever_its_quotes(table, rows):
    lines = parsed("csv", table).splitlines()
    del lines[1]
    assert lines == [f"| {row} |" for row in rows]


def test_a_csv_of_utf_16_with_titles_is_read():
    text = "\n".join([*(f"# Title {at}" for at in range(5)), "a;b", "ä;1,5", "ö;2,5"])
    found = parsed("csv", text.encode("utf-16"))
    assert found.startswith("\\# Title 0\n\n\\# Title 1")
    assert found.endswith("| a | b |\n| --- | --- |\n| ä | 1,5 |\n| ö | 2,5 |")


STYLE = (
    "<style>@media print {.p{display:none}} @keyframes k {from{visibility:hidden}}"
    ".h, #i {display:none} p.v{visibility:hidden!important} .s{display:none} b.s{display:inline}"
    "body{display:none}</style>"
)


@pytest.mark.parametrize(
    "hidden",
    [
        f"{STYLE}<p class='x h'>secret</p>",
        f"{STYLE}<div id=i><p>secret</p></div>",
        f"{STYLE}<p class=v style='visibility:visible'>secret</p>",
        f"{STYLE}<i class=s>secret</i>",
        f"{STYLE}<style>@media print {{.h{{display:block}}}}</style><p class=h>secret</p>",
        f"{STYLE}<style>.h::before, :root{{display:block}}</style><p class=h>secret</p>",
        f"{STYLE}<style media=screen>.a{{display:none}}</style><p class=a>secret</p>",
        "<style>/* a */ .a /* } */ {color:red; display:none; & b{top:0}}</style><p class=a>secret",
        "<style>.a{display:none!important} x .a{display:block}</style><p class=a>secret</p>",
        "<p style='visibility:hidden'>secret<b style='top:0'>secret</b></p>",
        "<p style='display:block; display: none'>secret</p>",
        "<dialog>secret</dialog>",
        "<canvas>secret</canvas><video>secret</video><iframe>secret</iframe>",
    ],
)
def test_elements_that_a_style_hides_are_left_out(hidden):
    assert parsed("html", f"<p>Seen</p>{hidden}") == "Seen"
    assert ("style hides" in notes("html", f"<p>Seen</p>{hidden}")) == ("style" in hidden)


@pytest.mark.parametrize(
    "shown",
    [
        f"{STYLE}<p class=p>words</p>",
        f"{STYLE}<b class=s>words</b>",
        f"{STYLE}<p class=h style='display:block'>words</p>",
        "<p style='display:none;display:block'>words</p>",
        (
            "<style>.a{display:none!important} @media(width>9em)"
            "{.b{display:block!important}}</style><p class='a b'>words</p>"
        ),
        "<style>.a{display:none} .acc.is-open > .a{display:block}</style><p class=a>words</p>",
        "<style>.a{display:none} .a:first-child{display:block}</style><p class=a>words</p>",
        "<style>.a{display:none} .a:not(.b, .c)[x='1,2']{display:block}</style><p class=a>words",
        "<style>.a{display:none} #m .a{display:block}</style><p class=a>words</p>",
        "<style>.a{display:none} .m{.a{display:block}}</style><p class=a>words</p>",
        "<style>.m{.a{display:none}} .a:hover{display:none}</style><p class=a>words</p>",
        "<style media=print>.a{display:none}</style><p class=a>words</p>",
        "<style media='(max-width: 9em)'>.a{display:none}</style><p class=a>words</p>",
        "<noscript><style>.a{display:none}</style></noscript><p class=a>words</p>",
        "<template><style>.a{display:none}</style></template><p class=a>words</p>",
        "<svg><style>.a{display:none}</style></svg><p class=a>words</p>",
        "<details><summary>More</summary>words</details>",
        "<dialog open>words</dialog>",
    ],
)
def test_elements_that_a_browser_shows_are_kept(shown):
    assert "words" in parsed("html", shown)
    assert notes("html", shown) == ""


def test_a_visible_part_of_an_invisible_element_is_kept():
    page = (
        "<style>.h{visibility:hidden} .v{visibility:visible}</style><div class=h>secret"
        "<p>secret</p><div>secret<p class=v>words <i class=h>secret</i></p></div></div>"
    )
    assert parsed("html", page) == "words"
    assert "style hides" in notes("html", page)


@pytest.mark.parametrize(
    "sheet",
    [
        *(
            "a",
            "/*",
            "/**/",
            "{",
            "}",
            "{}",
            "a{",
            "a,",
            "(",
            "[",
            ":",
            ".a",
            "@media ",
            "display ",
        ),
        *("display:", ";display:none", "a{display:none}", "a,{display:x;display:y}", " ", ".a:b("),
    ],
)
def test_style_sheets_take_linear_time(sheet):
    text = sheet * (1_000_000 // len(sheet))
    page = bs4.BeautifulSoup(f"<style>{text}{{display:none}}</style><p>words", "html.parser")
    assert len(page.style.get_text()) > 900_000
    # Quadratic time would be hours.
    assert page.p not in style_sheets.styled(page.find_all()).hidden


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<table><td>a<td>b<tr><td>c<td>d</table>", "| a | b |\n| --- | --- |\n| c | d |"),
        ("<table>stray<tr><td>a<td>b</table>", "stray\n\n| a | b |\n| --- | --- |"),
        ("<td>a</td><td>b</td>", "a b"),
        ("<table><form><tr><td>a<td>b</form></table>", "| a | b |\n| --- | --- |"),
        ("<table><tr><td><h1>T</h1><p>one</p></table>", "# T\n\none"),
        (
            "<table><tfoot><tr><td>f<td>g</tfoot><tbody><tr><td>1<td>2</table>",
            "| 1 | 2 |\n| --- | --- |\n| f | g |",
        ),
        (
            "<table><tr><td rowspan=0>a<td>b<tr><td>c<tr><td>d</table>",
            "| a | b |\n| --- | --- |\n|  | c |\n|  | d |",
        ),
        ("<dl><dt>T<dd>one<dd>two</dl>", "T\n:   one\n:   two"),
        ("x<li>a<li>b", "x\n\n- a\n\n- b"),
        ("<details><summary>A</summary>b</details>", "A\n\nb"),
        ("<a href=/x><h2>Head</h2><p>text</p></a>", "## [Head](/x)\n\ntext"),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", "漢 (kan)"),
        ("<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "1/2"),
        ("<math><msup><mi>x</mi><mn>10</mn></msup></math>", "x^10"),
        ("<math><annotation encoding='application/x-tex'>x_1^2</annotation></math>", "$x_1^2$"),
        ("so&shy;ft long<wbr>word", "soft longword"),
        ("<plaintext>a <b>", "```\na <b>\n```"),
    ],
)
def test_a_page_has_the_shape_that_browsers_show(page, text):
    assert parsed("html", page) == text


def test_the_mark_of_utf_8_and_utf_16_wins_over_a_declared_charset():
    page = "<meta charset=iso-8859-1><p>café</p>"
    assert parsed("html", page.encode("utf-8-sig")) == "café"
    assert parsed("html", page.replace("iso-8859-1", "utf-8").encode("utf-16")) == "café"
    assert parsed("html", "<meta charset=bogus><p>café</p>".encode("cp1252")) == "café"
