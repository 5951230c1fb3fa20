"""Presentations: equations, footers, notes, charts, SmartArt and damaged slides."""

import datetime as dt
import io
import re
import zipfile

import pptx as library
import pytest
from documents_files import archive
from lxml import etree
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE

from gateway_documents.child import libraries, parsing
from gateway_documents.errors import Unreadable

OFFICE = "http://schemas.openxmlformats.org"
NAMES = (
    f'xmlns:p="{OFFICE}/presentationml/2006/main" xmlns:a="{OFFICE}/drawingml/2006/main" '
    f'xmlns:mc="{OFFICE}/markup-compatibility/2006" '
    f'xmlns:m="{OFFICE}/officeDocument/2006/math" '
    'xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main"'
)


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(data):
    return "\n\n".join(parsing.parse("pptx", data).pages)


def notes(data):
    return " ".join(parsing.parse("pptx", data).notes)


def deck(*slides):
    """Return a presentation; each slide is filled by a function, or has these shapes."""
    presentation = library.Presentation()
    for fill in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        if callable(fill):
            fill(slide.shapes)
        else:
            for element in etree.fromstring(f"<x {NAMES}>{fill}</x>"):
                slide.shapes._spTree.append(element)
    file = io.BytesIO()
    presentation.save(file)
    return file.getvalue()


def changed(data, change):
    with zipfile.ZipFile(io.BytesIO(data)) as whole:
        members = {member: whole.read(member) for member in whole.namelist()}
    return archive({name: change(name, part) for name, part in members.items()})


def shape(paragraphs, place=""):
    if not paragraphs.startswith("<"):
        paragraphs = f"<a:p><a:r><a:t>{paragraphs}</a:t></a:r></a:p>"
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="9" name="S"/><p:cNvSpPr/><p:nvPr>{place}</p:nvPr></p:nvSpPr>'
        f"<p:spPr/><p:txBody><a:bodyPr/>{paragraphs}</p:txBody></p:sp>"
    )


def test_an_equation_among_alternatives_is_read():
    formula = "<a14:m><m:oMath><m:r><m:t>x=1</m:t></m:r></m:oMath></a14:m>"
    text = (
        "<a:p><a:r><a:t>So </a:t></a:r><mc:AlternateContent><mc:Choice Requires='a14'>"
        f"{formula}</mc:Choice><mc:Fallback><a:r><a:t>picture</a:t></a:r></mc:Fallback>"
        "</mc:AlternateContent></a:p>"
    )
    assert parsed(deck(shape(text))) == "So $x=1$"


def test_raised_and_lowered_digits_of_a_slide_are_kept():
    def part(text, baseline):
        return f'<a:r><a:rPr baseline="{baseline}"/><a:t>{text}</a:t></a:r>'

    text = f"<a:p>{part('x', 0)}{part('2', 30000)}{part(' H', 0)}{part('2', -25000)}</a:p>"
    assert parsed(deck(shape(text))) == "x² H₂"


def test_a_footer_is_shown_once_and_a_number_never():
    footer = shape("Quay Ltd", '<p:ph type="ftr" idx="11"/>')
    field = '<a:p><a:fld type="slidenum" id="{1}"><a:t>7</a:t></a:fld></a:p>'
    number = shape(field, '<p:ph type="sldNum" idx="12"/>')
    day = shape(field.replace("7", "Monday"), '<p:ph type="dt" idx="10"/>')
    slides = [shape("First") + footer + number + day, shape("Second") + footer]
    assert parsed(deck(*slides)).split("\n\n") == ["First", "Quay Ltd", "Second"]


def test_notes_that_a_slide_does_not_refer_to_are_read():
    def fill(shapes):
        shapes.add_textbox(0, 0, 1, 1).text_frame.text = "Slide"
        shapes._parent.notes_slide.notes_text_frame.text = "Words to say"

    def unlink(name, part):
        is_link = name == "ppt/slides/_rels/slide1.xml.rels"
        return re.sub(rb"<Relationship [^>]*notesSlide[^>]*/>", b"", part) if is_link else part

    assert "Words to say" in parsed(changed(deck(fill), unlink))


def chart(kind, data):
    return deck(lambda shapes: shapes.add_chart(kind, 0, 0, 500, 500, data))


def test_a_scatter_chart_shows_its_points():
    data = XyChartData()
    series = data.add_series("Height")
    series.add_data_point(1.5, 2)
    assert "| 1.5 | 2 |" in parsed(chart(XL_CHART_TYPE.XY_SCATTER, data))
    assert "Height" in parsed(chart(XL_CHART_TYPE.XY_SCATTER, data))


def test_categories_of_two_levels_are_one_label():
    data = CategoryChartData()
    for year in ("2025", "2026"):
        category = data.add_category(year)
        category.add_sub_category("Spring")
        category.add_sub_category("Autumn")
    data.add_series("Bags", (1, 2, 3, 4))
    lines = parsed(chart(XL_CHART_TYPE.COLUMN_CLUSTERED, data)).splitlines()
    assert lines[2:] == [
        *("| 2025 Spring | 1 |", "| 2025 Autumn | 2 |"),
        *("| 2026 Spring | 3 |", "| 2026 Autumn | 4 |"),
    ]


def test_a_slide_with_a_mistake_in_its_xml_is_read():
    def spoil(name, part):
        return part.replace(b"Words", b"W & W<a:bad>") if name.endswith("slide1.xml") else part

    data = changed(deck(shape("Words")), spoil)
    assert "W & W" in parsed(data)
    assert "damaged in places" in notes(data)


@pytest.mark.parametrize(
    "shapes",
    [
        shape("\u00a0 \u200b"),
        shape("<a:p><a:br/></a:p>"),
        shape('<a:p><a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr></a:p>'),
        shape("<a:p><a14:m><m:oMath/></a14:m></a:p>"),
    ],
)
def test_slides_that_show_no_words_are_refused(shapes):
    with pytest.raises(Unreadable, match=r"^The file contains no text\.$"):
        parsing.parse("pptx", deck(shapes))


def test_axes_name_the_values_and_formats_apply():
    data = CategoryChartData(number_format="0%")
    data.categories = [dt.date(2026, 1, 1), dt.date(2026, 2, 1)]
    data.add_series("Share", (0.25, 0.5))

    def fill(shapes):
        frame = shapes.add_chart(XL_CHART_TYPE.LINE, 0, 0, 500, 500, data)
        frame.chart.value_axis.axis_title.text_frame.text = "of all"

    assert parsed(deck(fill)).splitlines() == [
        *("|  | Share (of all) |", "| --- | --- |"),
        *("| 2026-01-01 | 25% |", "| 2026-02-01 | 50% |"),
    ]


def test_a_chart_without_categories_counts_them():
    data = CategoryChartData()
    data.categories = ["a", "b"]
    data.add_series("One", (None, 8))

    def strip(name, part):
        is_chart = name.startswith("ppt/charts/chart")
        return re.sub(rb"(?s)<c:cat>.*?</c:cat>", b"", part) if is_chart else part

    text = parsed(changed(chart(XL_CHART_TYPE.LINE, data), strip))
    assert text.splitlines()[2:] == ["| 1 |  |", "| 2 | 8 |"]


def point(number, *paragraphs):
    text = "".join(f"<a:p><a:r><a:t>{one}</a:t></a:r></a:p>" for one in paragraphs)
    return f'<dgm:pt modelId="{number}"><dgm:t>{text}</dgm:t></dgm:pt>'


def test_smartart_has_the_order_of_its_tree_and_no_glued_words():
    diagram = f"{OFFICE}/drawingml/2006/diagram"
    links = "".join(
        f'<dgm:cxn modelId="9{source}{order}" srcId="{source}" destId="{target}" srcOrd="{order}"/>'
        for source, target, order in ((0, 1, 0), (0, 3, 1), (1, 2, 0))
    )
    points = point(0) + point(2, "Child") + point(3, "Last") + point(1, "First", "line")
    data = (
        f'<dgm:dataModel xmlns:dgm="{diagram}" {NAMES}><dgm:ptLst>{points}</dgm:ptLst>'
        f"<dgm:cxnLst>{links}</dgm:cxnLst></dgm:dataModel>"
    ).encode()
    frame = (
        '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="5" name="D"/><p:cNvGraphicFramePr/>'
        f'<p:nvPr/></p:nvGraphicFramePr><a:graphic><a:graphicData uri="{diagram}"><dgm:relIds '
        f'xmlns:dgm="{diagram}" xmlns:r="{OFFICE}/officeDocument/2006/relationships" r:dm="d1"/>'
        "</a:graphicData></a:graphic></p:graphicFrame>"
    )
    link = (
        f'<Relationship Id="d1" Type="{OFFICE}/officeDocument/2006/relationships/diagramData" '
        'Target="../diagrams/data1.xml"/></Relationships>'
    ).encode()
    with zipfile.ZipFile(io.BytesIO(deck(frame))) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    links_of_slide = "ppt/slides/_rels/slide1.xml.rels"
    members[links_of_slide] = members[links_of_slide].replace(b"</Relationships>", link)
    members["ppt/diagrams/data1.xml"] = data
    assert parsed(archive(members)) == "- First line\n- Child\n- Last"


@pytest.mark.parametrize(
    "shapes",
    [
        """<p:pic><p:nvPicPr><p:cNvPr id="5" name="P" descr="IMG_2034.jpg"/><p:cNvPicPr/><p:nvPr/>
        </p:nvPicPr><p:blipFill/><p:spPr/></p:pic>""",
        f"""<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="5" name="O"/><p:cNvGraphicFramePr/>
        <p:nvPr/></p:nvGraphicFramePr><a:graphic><a:graphicData
        uri="{OFFICE}/presentationml/2006/ole"><p:oleObj name="Worksheet"
        progId="Excel.Sheet.12"/></a:graphicData></a:graphic></p:graphicFrame>""",
    ],
)
def test_names_of_pictures_and_objects_are_no_words(shapes):
    with pytest.raises(Unreadable, match=r"^The file contains no text\.$"):
        parsing.parse("pptx", deck(shapes))


def test_a_presentation_without_slides_has_no_text():
    with pytest.raises(Unreadable, match=r"^The file contains no text\.$"):
        parsing.parse("pptx", deck())


def test_a_line_break_of_a_title_is_no_code():
    assert parsed(deck(shape("a_x000B_b"))) == "a b"
