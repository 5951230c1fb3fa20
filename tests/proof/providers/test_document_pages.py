"""HTML pages and CSV files as they occur: what styles hide and part, tables, and delimiters."""

import pytest

from gateway_documents.child import libraries, parsing
from gateway_documents.errors import Unreadable


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(kind, text):
    return "\n\n".join(parsing.parse(kind, text.encode()).pages)


def table(*rows):
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join((head, f"| {' | '.join('---' for _ in rows[0])} |", *body))


@pytest.mark.parametrize(
    "hidden",
    [
        "<style>.m .s{display:none}</style><ul class=m><li class=s>secret</ul>",
        "<style>div.m > p{display:none}</style><div class=m><p>secret</div>",
        "<style>[data-x]{display:none}</style><p data-x=1>secret",
        "<style>p:where(.x){display:none}</style><p class=x>secret",
        "<style>@layer a{.x{display:none}}</style><p class=x>secret",
        "<style>@supports(display:grid){.x{display:none}}</style><p class=x>secret",
        "<style><!-- .x{display:none} --></style><p class=x>secret",
        "<style>.x{opacity:0}</style><p class=x>secret",
        "<style>.x{position:absolute;clip:rect(0,0,0,0)}</style><p class=x>secret",
        "<p style='clip-path: inset(50%)'>secret",
        "<p style='position:absolute;left:-9999px'>secret",
        "<p style='text-indent:-9999px'>secret",
        "<p style='font-size:0'>secret",
        "<p style='transform:scale(0)'>secret",
        "<div style='height:0;overflow:hidden'>secret</div>",
        "<div style='content-visibility:hidden'>secret</div>",
        "<div popover>secret</div>",
        "<noembed>secret</noembed>",
    ],
)
def test_elements_that_any_style_hides_are_left_out(hidden):
    assert parsed("html", f"<p>words</p>{hidden}") == "words"


@pytest.mark.parametrize(
    "shown",
    [
        "<style>.no-js .x{display:none}</style><p class=x>words",
        "<style>a:hover{display:none}</style><a href=#>words</a>",
        "<p style='opacity:.5'>words",
        # It appears when the page has loaded.
        "<p style='opacity:0;transform:translateY(20px)'>words",
        "<style>.x{opacity:0;transition:opacity 1s}</style><p class=x>words",
        "<ul style='font-size:0'><li style='font-size:16px'>words</ul>",
        "<p style='position:relative;left:-1px;text-indent:-2em'>words",
        "<div style='height:0'>words</div>",
        "<style>.x{height:0;overflow:hidden}.x.open{height:9em}</style><p class='x open'>words",
    ],
)
def test_elements_that_a_style_only_moves_are_kept(shown):
    assert "words" in parsed("html", shown)


@pytest.mark.parametrize(
    "page",
    [
        "<div style='display:flex'><span>red</span><span>blue</span></div>",
        "<style>.r{display:grid}</style><div class=r><b>red</b><b>blue</b></div>",
        "<style>.b{display:block}</style><span class=b>red</span><span class=b>blue</span>",
        "<style>nav a{display:block}</style><nav><a href=/a>red</a><a href=/b>blue</a></nav>",
        "<div role=table><div role=row><i role=cell>red</i><i role=cell>blue</i></div></div>",
        "<select><optgroup label=red><option>blue</optgroup></select>",
    ],
)
def test_words_that_a_style_parts_are_parted(page):
    found = parsed("html", page)
    assert "red" in found
    assert "blue" in found
    assert "redblue" not in found.replace("*", "")


def test_rows_stay_in_their_sections():
    page = (
        "<table><thead><tr><th>A<th>B</thead><tbody><tr><td rowspan=9>1<td>2</tbody>"
        "<thead><tr><th>C<th>D</thead><tbody><tr><td>3<td>4</table>"
    )
    assert parsed("html", page) == table("AB", "12", "CD", "34")


@pytest.mark.parametrize("start", ["<main>", "<article><h1>Q</h1>", "<my-part>", "<nav></nav><p>"])
def test_a_page_without_a_body_tag_is_read(start):
    assert "words" in parsed(
        "html", f"<!doctype html><meta charset=utf-8><title>T</title>{start}words"
    )
    assert "T" not in parsed("html", f"<title>T</title>{start}words")


def test_a_matrix_keeps_its_rows():
    rows = "<mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr>" * 2
    assert parsed("html", f"<math><mtable>{rows}</mtable></math>") == "1, 2; 1, 2"


@pytest.mark.full
def test_a_long_page_is_read():
    page = "<p>words and <b>more</b> words of a page</p>" * 15_000
    assert len(parsed("html", page)) > 500_000


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a^b^c\n1^2^3\n", ("abc", "123")),
        ("a:b:c\n1:2:3\n", ("abc", "123")),
        ("name   age  city\nAnna   5    Bern\n", (["name", "age", "city"], ["Anna", "5", "Bern"])),
        ("sep = ;\na;b\n1;2\n", ("ab", "12")),
        ("sep=;;;\na;b\n1;2\n", ("ab", "12")),
        ("\ufeffsep=; \r\na;b\r\n1;2\r\n", ("ab", "12")),
        ("a,b\n'x,y',2\n'z',3\n", ("ab", ["x,y", "2"], ["z", "3"])),
        ("a,b\nit's,2\n'tis,3\n", ("ab", ["it's", "2"], ["'tis", "3"])),
        ("name\nAnna Meier\nBen Roth\n", (["name"], ["Anna Meier"], ["Ben Roth"])),
        ("at 10:30 it began\n11:30:10\n", (["at 10:30 it began"], ["11:30:10"])),
    ],
)
def test_a_csv_is_read_with_rare_delimiters_and_quotes(text, rows):
    assert parsed("csv", text) == table(*rows)


@pytest.mark.parametrize(("text", "reason"), [(",,,\n,,\n", "no text"), ("\ufeff\n", "empty")])
def test_a_csv_without_values_is_refused(text, reason):
    with pytest.raises(Unreadable, match=reason):
        parsed("csv", text)
