"""Charts and notes of presentations: titles of axes, odd attributes, and large or hostile parts."""

import re

import pytest
from documents_files import request
from documents_word import paragraph, word
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from test_document_slides import NAMES, OFFICE, changed, chart, deck, notes, parsed, shape

from gateway_documents.child import libraries, parsing
from gateway_documents.errors import Unreadable
from gateway_documents.provider import DocumentParser

CHART = f'xmlns:c="{OFFICE}/drawingml/2006/chart"'
LINKS = "ppt/slides/_rels/slide1.xml.rels"


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


@pytest.fixture
async def parser():
    """Return a parser whose child has ten seconds of processor time."""
    found = DocumentParser(pictures=None)
    yield found
    await found.close()


def titled(kind, data, **titles):
    """Return a chart whose `category_axis` or `value_axis` has a title."""

    def fill(shapes):
        found = shapes.add_chart(kind, 0, 0, 500, 500, data).chart
        for axis, title in titles.items():
            getattr(found, axis).axis_title.text_frame.text = title

    return deck(fill)


def columns(name="Bags", values=(1, 2)):
    data = CategoryChartData()
    data.categories = [f"c{at}" for at in range(len(values))]
    data.add_series(name, values)
    return data


def rewritten(data, pattern, text):
    """Return a presentation with other XML in its chart."""

    def change(name, part):
        is_chart = name.startswith("ppt/charts/chart")
        return re.sub(pattern, text, part.decode(), flags=re.DOTALL) if is_chart else part

    return changed(data, change)


@pytest.mark.parametrize(
    ("titles", "head"),
    [
        ({}, "|  | Probe |"),
        ({"category_axis": "Time"}, "| Time | Probe |"),
        ({"value_axis": "m"}, "|  | Probe (m) |"),
        ({"category_axis": "Time", "value_axis": "m"}, "| Time | Probe (m) |"),
    ],
)
@pytest.mark.parametrize("kind", [XL_CHART_TYPE.XY_SCATTER, XL_CHART_TYPE.XY_SCATTER_LINES])
def test_each_axis_of_points_names_its_own_values(kind, titles, head):
    data = XyChartData()
    data.add_series("Probe").add_data_point(1.5, 2)
    assert parsed(titled(kind, data, **titles)).splitlines()[0] == head


@pytest.mark.parametrize("kind", [XL_CHART_TYPE.BAR_CLUSTERED, XL_CHART_TYPE.COLUMN_CLUSTERED])
@pytest.mark.parametrize(
    ("title", "shown"), [("EUR", "EUR"), ("Sales\nin EUR", "Sales in EUR"), (" ", None)]
)
def test_the_title_of_values_is_shown_whatever_their_direction(kind, title, shown):
    data = titled(kind, columns(), value_axis=title, category_axis="Month")
    head = f"Bags ({shown})" if shown else "Bags"
    assert parsed(data).splitlines()[0] == f"| Month | {head} |"


def test_each_axis_names_its_own_series():
    data = titled(XL_CHART_TYPE.COLUMN_CLUSTERED, columns(), value_axis="EUR")
    line = (
        '<c:lineChart><c:ser><c:idx val="1"/><c:tx><c:v>Rain</c:v></c:tx><c:val><c:numLit>'
        '<c:pt idx="0"><c:v>7</c:v></c:pt></c:numLit></c:val></c:ser><c:axId val="8"/>'
        '<c:axId val="9"/></c:lineChart><c:valAx><c:axId val="9"/><c:axPos val="r"/><c:title>'
        "<c:tx><c:rich><a:p><a:r><a:t>mm</a:t></a:r></a:p></c:rich></c:tx></c:title></c:valAx>"
    )
    text = parsed(rewritten(data, "<c:catAx>", f"{line}<c:catAx>"))
    assert text.splitlines()[0] == "|  | Bags (EUR) | Rain (mm) |"


def test_a_title_linked_to_a_cell_is_its_text():
    data = titled(XL_CHART_TYPE.LINE, columns(), value_axis="-")
    link = (
        "<c:tx><c:strRef><c:f>Sheet1!$B$1</c:f><c:strCache><c:ptCount val='1'/>"
        "<c:pt idx='0'><c:v>Revenue</c:v></c:pt></c:strCache></c:strRef></c:tx>"
    )
    text = parsed(rewritten(data, r"(?<=<c:title>)<c:tx>.*?</c:tx>", link))
    assert text.splitlines()[0] == "|  | Bags (Revenue) |"


@pytest.mark.parametrize("empty", ["<c:v/>", "<c:v></c:v>"])
def test_a_series_with_an_empty_name_has_that_of_its_axis(empty):
    data = titled(XL_CHART_TYPE.LINE, columns(), value_axis="EUR")
    text = parsed(rewritten(data, "<c:v>Bags</c:v>", empty))
    assert text.splitlines()[0] == "|  | EUR |"


@pytest.mark.parametrize("index", ["²", "9" * 5_000, "-1", "", "x", "٣"])
def test_an_odd_number_of_a_point_costs_no_more_than_the_point(index):
    data = chart(XL_CHART_TYPE.LINE, columns(values=(1, 2, 3)))
    odd = f'<c:pt idx="{index}"><c:v>9</c:v></c:pt></c:numCache>'
    text = parsed(rewritten(data, "</c:numCache>", odd))
    assert {"| c0 | 1 |", "| c1 | 2 |", "| c2 | 3 |"} <= set(text.splitlines())


@pytest.mark.parametrize("order", ["²", "9" * 5_000])
def test_an_odd_order_of_smartart_costs_no_slide(order):
    diagram = (
        f'<dgm:dataModel xmlns:dgm="{OFFICE}/drawingml/2006/diagram" {NAMES}><dgm:ptLst/>'
        f'<dgm:cxnLst><dgm:cxn srcId="0" destId="1" srcOrd="{order}"/></dgm:cxnLst></dgm:dataModel>'
    )
    data = word(paragraph("Words"), files={"word/diagrams/data1.xml": diagram})
    assert "\n\n".join(parsing.parse("docx", data).pages) == "Words"


@pytest.mark.parametrize(
    "inside", ["", "<!-- none -->", "<!-- one --><mc:Choice><a:r><a:t>!</a:t></a:r></mc:Choice>"]
)
def test_alternatives_without_a_choice_cost_nothing_else(inside):
    alternatives = f"<mc:AlternateContent>{inside}</mc:AlternateContent>"
    text = parsed(deck(shape(f"<a:p><a:r><a:t>Words</a:t></a:r>{alternatives}</a:p>")))
    assert text == ("Words!" if "Choice" in inside else "Words")


def test_a_placeholder_outside_a_shape_costs_nothing_else():
    place = '<p:nvPr><p:ph type="ftr"/></p:nvPr>'

    def change(name, part):
        is_slide = name == "ppt/slides/slide1.xml"
        return part.replace(b"</p:sld>", f"{place}</p:sld>".encode()) if is_slide else part

    assert parsed(changed(deck(shape("Words")), change)) == "Words"


def series(count, last, points=1):
    """Return series of a chart whose last point has a large number."""
    found = "".join(
        f'<c:pt idx="{at}"><c:v>{at}</c:v></c:pt>' for at in range(last, last - points, -1)
    )
    one = f"<c:ser><c:val><c:numLit>{found}</c:numLit></c:val></c:ser>"
    return one * count


def with_series(inside):
    return rewritten(chart(XL_CHART_TYPE.LINE, columns()), "<c:ser>.*</c:ser>", inside)


def test_gaps_of_a_chart_are_filled():
    lines = parsed(with_series(series(1, 9_999))).splitlines()
    assert lines[-2:] == ["| 9999 |  |", "| 10000 | 9999 |"]


@pytest.mark.full
def test_a_long_chart_without_gaps_has_all_its_points_in_order():
    lines = parsed(with_series(series(10, 9_999, points=10_000))).splitlines()
    assert lines[0].startswith("| 1 | 0 |")
    assert lines[-1].startswith("| 10000 | 9999 |")


def test_categories_of_a_later_series_are_those_of_the_chart():
    def one(inside):
        values = '<c:val><c:numLit><c:pt idx="0"><c:v>1</c:v></c:pt></c:numLit></c:val>'
        return f"<c:ser><c:tx><c:v>Bags</c:v></c:tx>{inside}{values}</c:ser>"

    names = '<c:cat><c:strLit><c:pt idx="0"><c:v>May</c:v></c:pt></c:strLit></c:cat>'
    assert parsed(with_series(one("") + one(names))).splitlines()[2:] == ["| May | 1 | 1 |"]


@pytest.mark.parametrize(("count", "last"), [(10, 99_999), (1, 999_999_999), (1_000, 1_000)])
def test_a_chart_with_too_many_gaps_is_refused(count, last):
    with pytest.raises(Unreadable, match=r"^The file is too large: a chart of [\d,]+ points"):
        parsing.parse("pptx", with_series(series(count, last)))


def levels(*labels):
    """Return categories of levels, the innermost first, each with a label for these numbers."""
    found = "".join(
        "<c:lvl>" + "".join(f'<c:pt idx="{at}"><c:v>{name}{at}</c:v></c:pt>' for at in numbers)
        + "</c:lvl>"
        for name, numbers in labels
    )  # fmt: skip
    return (
        f"<c:cat><c:multiLvlStrRef><c:multiLvlStrCache>{found}</c:multiLvlStrCache>"
        "</c:multiLvlStrRef></c:cat>"
    )


def with_levels(*labels):
    values = '<c:val><c:numLit><c:pt idx="0"><c:v>1</c:v></c:pt></c:numLit></c:val>'
    return with_series(f"<c:ser>{levels(*labels)}{values}</c:ser>")


async def test_many_categories_of_two_levels_have_their_labels(parser):
    numbers = range(19_999, -1, -1)
    data = with_levels(("in", numbers), ("out", numbers[::2]))
    lines = (await parser.submit(request("a.pptx", data), None)).text.splitlines()
    assert (lines[0], *lines[2:4]) == ("| in0 | 1 |", "| out1 in1 |  |", "| out1 in2 |  |")
    assert lines[-1] == "| out19999 in19999 |  |"


def test_too_many_levels_are_refused():
    with pytest.raises(Unreadable, match=r"too large: a chart with 1,001 levels of labels\.$"):
        parsing.parse("pptx", with_levels(("in", range(1_000)), *[("out", [0])] * 1_000))


def with_links(inside):
    """Return a presentation of a slide with notes and these other relations."""

    def fill(shapes):
        shapes.add_textbox(0, 0, 1, 1).text_frame.text = "Slide"
        shapes._parent.notes_slide.notes_text_frame.text = "Words to say"

    def change(name, part):
        return part.replace(b"<Relationship ", f"{inside}<Relationship ".encode(), 1) if (
            name == LINKS
        ) else part  # fmt: skip

    return changed(deck(fill), change)


async def test_relations_that_never_end_are_no_work(parser):
    data = with_links("<Relationship " + "x='/relationships/notesSlide' " * 30_000)
    assert "Slide" in (await parser.submit(request("a.pptx", data), None)).text


@pytest.mark.parametrize("quote", ["'", '"'])
def test_notes_of_a_hidden_slide_are_left_out(quote):
    def hide(name, part):
        if name == LINKS:
            return part.replace(b'"', quote.encode())
        return (
            part.replace(b"<p:sld ", b'<p:sld show="0" ') if "slides/slide1.xml" in name else part
        )

    def fill(shapes):
        shapes.add_textbox(0, 0, 1, 1).text_frame.text = "Slide"
        shapes._parent.notes_slide.notes_text_frame.text = "Words to say"

    data = changed(deck(fill, shape("Seen")), hide)
    assert parsed(data).strip() == "Seen"
    assert notes(data) == "Hidden slides, left out: 1."
