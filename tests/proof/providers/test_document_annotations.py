"""Annotations of PDFs: what the page shows is text, in its place, and nothing else."""

import pytest
from documents_raw_pdf import raw_pdf, stream, text

from gateway_documents.child import libraries, parsing

NOTE = "Paid by Alice."


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def look(words, width=228):
    entries = f"/Type/XObject/Subtype/Form/BBox[0 0 {width} 20]/Resources<</Font<</F1 3 0 R>>>>"
    return stream(text(2, 5, words), entries)


def annotation(kind, *, entries="", height=650, look_at=51):
    shown = f"/AP<</N {look_at} 0 R>>" if look_at else ""
    return f"<</Type/Annot/Subtype/{kind}/Rect[72 {height} 300 {height + 20}]{shown}{entries}>>"


def page(*found, more=None, catalog="", entries=""):
    """Return a PDF with two lines, between which annotations from number 60 are."""
    content = f"{text(72, 700, 'Above the note.')} {text(72, 600, 'Below the note.')}"
    numbers = " ".join(f"{60 + at} 0 R" for at in range(len(found)))
    objects = {51: look(NOTE), **{60 + at: one for at, one in enumerate(found)}, **(more or {})}
    entries = f"/Annots[{numbers}]{entries}"
    return raw_pdf([content], entries=entries, more=objects, catalog=catalog)


def form(numbers="60 0 R", more=""):
    return f"/AcroForm<</Fields[{numbers}]/DR<</Font<</F1 3 0 R>>>>/DA(/F1 12 Tf){more}>>"


def parsed(data):
    return parsing.parse("pdf", data).pages[0].split("\n\n")


@pytest.mark.parametrize("kind", ["FreeText", "Stamp", "Watermark", "Redact"])
@pytest.mark.parametrize("flags", ["", "/F 4", "/F 64"])
def test_the_words_of_an_annotation_are_read_in_their_place(kind, flags):
    assert parsed(page(annotation(kind, entries=flags))) == [
        "Above the note.",
        NOTE,
        "Below the note.",
    ]


@pytest.mark.parametrize("flags", ["/F 2", "/F 32", "/F 34"])
@pytest.mark.parametrize("kind", ["FreeText", "Stamp"])
def test_an_annotation_that_the_page_does_not_show_is_not_read(kind, flags):
    assert parsed(page(annotation(kind, entries=f"/Contents({NOTE}){flags}"))) == [
        "Above the note.",
        "Below the note.",
    ]


def test_a_note_without_an_appearance_is_read():
    found = parsed(page(annotation("FreeText", entries="/Contents(1. Paid)", look_at=0)))
    assert found == ["Above the note.", "Below the note.", "1\\. Paid"]
    found = parsed(page(annotation("FreeText", entries="/Contents(Paid)/F 2", look_at=0)))
    assert found == ["Above the note.", "Below the note."]


@pytest.mark.parametrize("kind", ["Text", "Popup", "Highlight", "Link"])
def test_the_words_of_a_comment_are_not_on_the_page(kind):
    assert parsed(page(annotation(kind, entries=f"/Contents({NOTE})", look_at=0))) == [
        "Above the note.",
        "Below the note.",
    ]


def test_a_scaled_and_a_turned_appearance_are_read():
    turned = "/Type/XObject/Subtype/Form/BBox[0 0 20 228]/Matrix[0 1 -1 0 0 0]"
    turned += "/Resources<</Font<</F1 3 0 R>>>>"
    more = {51: look(NOTE, width=456), 52: stream(f"0 1 -1 0 15 2 cm {text(0, 0, 'x')}", turned)}
    assert NOTE in parsed(page(annotation("Stamp"), more=more))


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_turned_page_shows_its_annotations(turn):
    data = page(annotation("FreeText"), entries=f"/Rotate {turn}")
    assert sorted(parsed(data)) == ["Above the note.", "Below the note.", NOTE]


def test_a_filled_field_is_read_in_its_place_with_its_name():
    field = annotation("Widget", entries=f"/FT/Tx/T(Payer)/V({NOTE})")
    assert parsed(page(field, catalog=form())) == [
        "Above the note.",
        f"Payer: {NOTE}",
        "Below the note.",
    ]


def test_a_field_is_read_as_it_is_shown():
    field = annotation("Widget", entries="/FT/Tx/T(total)/V(450)")
    shown = parsed(page(field, catalog=form(), more={51: look("EUR 450.00")}))
    assert shown[:3] == ["Above the note.", "EUR 450.00", "Below the note."]


def test_a_checked_box_is_shown_and_an_unchecked_one_is_not():
    font = "<</Type/Font/Subtype/Type1/BaseFont/ZapfDingbats>>"
    entries = "/Type/XObject/Subtype/Form/BBox[0 0 20 20]/Resources<</Font<</F1 53 0 R>>>>"
    more = {52: stream(text(2, 5, "4"), entries), 53: font, 54: stream("", entries)}

    def box(state):
        return (
            f"<</Type/Annot/Subtype/Widget/FT/Btn/T(Agreed)/V/{state}/AS/{state}"
            "/Rect[72 650 92 670]/AP<</N<</On 52 0 R/Off 54 0 R>>>>>>"
        )

    assert "✔" in "".join(parsed(page(box("On"), more=more, catalog=form())))
    assert "✔" not in "".join(parsed(page(box("Off"), more=more, catalog=form())))


@pytest.mark.parametrize("flags", [2, 32])
def test_a_hidden_field_is_not_read(flags):
    field = annotation("Widget", entries=f"/FT/Tx/T(Payer)/V({NOTE})/F {flags}")
    assert parsed(page(field, catalog=form())) == ["Above the note.", "Below the note."]


@pytest.mark.parametrize(
    "odd",
    [
        *("null", "5", "[]", "(x)", "<</Subtype/FreeText/AP 5/F(x)/Rect 3>>"),
        "<</Subtype/FreeText/Contents 7/F[1]>>",
        "<</Subtype/Stamp/AP<</N 51 0 R>>/Rect[1 2]>>",
    ],
)
def test_odd_entries_cost_no_other_text(odd):
    assert {"Above the note.", "Below the note."} <= set(parsed(page(odd)))


@pytest.mark.parametrize(("count", "kind"), [(2_001, "Stamp"), (50_001, "Link")])
def test_more_annotations_than_are_drawn_are_named(count, kind):
    one = annotation(kind)
    data = raw_pdf(
        [text(72, 700, "Words.")],
        entries=f"/Annots[{'60 0 R ' * count}]",
        more={51: look(NOTE), 60: one},
    )
    found = parsing.parse("pdf", data)
    assert found.pages == ["Words."]
    assert found.notes == ("The notes and stamps on the pages were left out: there are too many.",)


def test_pages_keep_their_numbers_beside_a_lost_one():
    data = raw_pdf(
        [text(72, 700, "One."), None, text(72, 700, "Three.")],
        entries="/Annots[60 0 R]",
        more={51: look(NOTE), 60: annotation("Stamp")},
    )
    assert [page.split("\n")[0] for page in parsing.parse("pdf", data).pages] == [
        *("One.", "", "Three."),
    ]
