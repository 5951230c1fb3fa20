"""Results are compared with the order: pixels and ratio, words and pages, values and schema."""

import json

import attrs
import pytest

from gateway import Attachment, GenerationRequest, Output, Result
from gateway.domain.acceptance import accept
from gateway.errors import NotAsOrdered, ResultUnusable
from gateway_testing.facts import ENDPOINT
from tests.bundled_endpoints import bundled_endpoints

EDIT = attrs.evolve(ENDPOINT, slug="edit", capability="image-editing")
PAPER = attrs.evolve(ENDPOINT, slug="paper", capability="document-parsing")
DATA = attrs.evolve(ENDPOINT, slug="data", capability="document-extraction")
PDF = Attachment(name="a.pdf", data=b"%PDF")


def pictured(width, height, kind="image/png"):
    return Result(outputs=(Output(data=b"x", media_type=kind, width=width, height=height),))


def order(ratio=None, resolution=None, **fields):
    return GenerationRequest(prompt="a", aspect_ratio=ratio, resolution=resolution, **fields)


def order_of(prompt):
    return GenerationRequest(prompt=prompt)


@pytest.mark.parametrize(
    ("ratio", "resolution", "width", "height"),
    [
        ("16:9", "4K", 1408, 768),  # js-genai 1682
        ("1:1", "4K", 2048, 2048),
        ("1:1", "2K", 1254, 1254),
        ("16:9", "2K", 1920, 1080),
        ("1:1", "1K", 512, 512),
        ("9:16", "1K", 1376, 768),
        ("1:1", "1K", 1376, 768),
        ("4:3", "1K", 1024, 1024),
        ("4:3", "1K", 1280, 1024),
        ("3:4", "2K", 2304, 1728),
        ("16:9", None, 1024, 1024),
    ],
)
def test_a_picture_of_another_size_is_not_what_was_ordered(ratio, resolution, width, height):
    with pytest.raises(NotAsOrdered, match=f"{width} x {height}"):
        accept(ENDPOINT, order(ratio, resolution), pictured(width, height))


# As vendors document them, or as others measured them: the ratios that sizes are rounded to.
REAL = [
    *(("1:1", "1K", 1024, 1024), ("16:9", "1K", 1344, 768), ("16:9", "1K", 1408, 768)),
    *(("4:3", "1K", 1184, 864), ("4:3", "1K", 1152, 896), ("3:4", "1K", 896, 1200)),
    *(("9:16", "1K", 736, 1312), ("9:16", "1K", 768, 1408), ("16:9", "1K", 1024, 576)),
    *(("16:9", "2K", 2752, 1536), ("16:9", "2K", 2560, 1440), ("16:9", "2K", 2048, 1152)),
    *(("3:4", "2K", 1792, 2400), ("1:1", "2K", 1984, 1984), ("9:16", "4K", 3072, 5504)),
    *(("16:9", "4K", 3840, 2160), ("4:3", "4K", 3264, 2448), ("1:1", "4K", 2880, 2880)),
    *(("4:3", None, 1472, 1140), ("1:1", None, 64, 64), (None, None, 7, 300)),
]


@pytest.mark.parametrize(("ratio", "resolution", "width", "height"), REAL)
def test_sizes_that_vendors_really_send_are_sold(ratio, resolution, width, height):
    made = pictured(width, height)
    assert accept(ENDPOINT, order(ratio, resolution), made) == made


def test_a_provider_declares_what_its_sizes_are():
    endpoint = attrs.evolve(ENDPOINT, least_pixels={"1K": 200_000, "": 900_000})
    assert accept(endpoint, order("1:1", "1K"), pictured(512, 512))
    with pytest.raises(NotAsOrdered, match="900,000"):
        accept(endpoint, order("1:1"), pictured(512, 512))


def test_an_edit_may_keep_a_long_pictures_ratio_but_not_shrink_it():
    photo = Attachment(name="a.png", data=b"x")
    kept = order(None, "2K", attachment=photo)
    assert accept(EDIT, kept, pictured(2048, 256))
    with pytest.raises(NotAsOrdered):
        accept(EDIT, kept, pictured(1024, 768))
    with pytest.raises(NotAsOrdered):
        accept(EDIT, order("16:9", "2K", attachment=photo), pictured(2048, 256))


def test_every_picture_of_a_result_is_compared_and_so_is_its_format():
    two = Result(outputs=(*pictured(64, 64).outputs, *pictured(64, 32).outputs))
    with pytest.raises(NotAsOrdered):
        accept(ENDPOINT, order("1:1"), two)
    with pytest.raises(NotAsOrdered, match="image/webp was ordered"):
        accept(ENDPOINT, order(output_format="webp"), pictured(64, 64))


def test_no_bundled_offer_promises_more_than_its_resolution_may_be_expected_to_have():
    most = {"": 1024 * 1024, "1K": 1024 * 1024, "2K": 2048 * 2048, "4K": 4096 * 4096}
    pictures = [one for one in bundled_endpoints().values() if one.sells_pictures]
    assert pictures
    for endpoint in pictures:
        for resolution in endpoint.resolution.values or ("",):
            promised = endpoint.pixels_of(order(resolution=resolution))
            assert promised <= most[resolution], endpoint.slug
            assert promised > 0 or not endpoint.resolution.values, endpoint.slug


BLANK = {
    "nothing": "",
    "blanks": " \n\t\u200b\n\f",
    "a picture": "![img-0.jpeg](img-0.jpeg)",
    "pictures in lines": "![a](b.png)\n\n---\n\n![](data:image/png;base64,iVBORw0KGgo=)",
    "a picture by name": "![scan][1]\n\n[1]: data:image/png;base64,iVBORw0KGgo=",
    "a comment": "<!-- image -->",
    "comments of pages": '<!-- PageBreak -->\n<!-- PageNumber="1" -->\n\n<!--\nfigure\n-->',
    "tags": "<figure>\n<img src='a.png' alt='scan'/>\n</figure><br>",
    "an empty table": "| | |\n|---|---|\n| | |",
    "an empty table of tags": "<table><tr><td>&nbsp;</td></tr></table>",
    "page marks": "{0}----------------\n\n## Page 1 of 2\n\n--- page break ---",
    "marks of an engine": "NO_CONTENT_HERE\n\n[image]",
}


@pytest.mark.parametrize("text", BLANK.values(), ids=BLANK)
def test_what_only_stands_for_pictures_is_no_text(text):
    with pytest.raises(NotAsOrdered, match="no text"):
        accept(PAPER, order(attachment=PDF), Result(text=text))


WORDS = {
    "a letter": "é",
    "a number": "# 42",
    "beside a picture": "![a](b.png) Total",
    "after marks": "<!-- image -->\n\nPage 1\n\nDear reader,",
    "in a cell": "<table><tr><td>42</td></tr></table>",
    "another script": "日本",
    "a comparison": "a < b",
    "after an open comment": "<!-- one word",
    "far away": "![](x.png)\n" * 20_000 + "end",
    "pages of words": "Pages of history",
}


@pytest.mark.parametrize("text", WORDS.values(), ids=WORDS)
def test_words_are_a_text(text):
    assert accept(PAPER, order(attachment=PDF), Result(text=text)).text == text


def test_pages_as_json_do_not_replace_a_text_but_a_document_does():
    for kind in ("application/json", "image/png"):
        with pytest.raises(NotAsOrdered):
            accept(PAPER, order(), Result(text=" ", outputs=(Output(data=b"x", media_type=kind),)))
    for kind, data in (("application/pdf", b"%PDF"), ("text/markdown", b"# A")):
        assert accept(PAPER, order(), Result(outputs=(Output(data=data, media_type=kind),)))
    blank = Output(data=b"![a](b.png)", media_type="text/markdown")
    with pytest.raises(NotAsOrdered):
        accept(PAPER, order(), Result(outputs=(blank,)))
    with pytest.raises(ResultUnusable, match="nothing"):
        accept(PAPER, order(), Result())


def test_all_pages_that_the_price_counts_are_read():
    paid = order(attachment=PDF, pages=8)
    with pytest.raises(NotAsOrdered, match="2 of the document's 8 pages"):
        accept(PAPER, paid, Result(text="a", pages=2))
    assert accept(PAPER, paid, Result(text="a", pages=8))
    assert accept(PAPER, paid, Result(text="a"))
    slides = attrs.evolve(paid, attachment=Attachment(name="a.pptx", data=b"PK"))
    assert accept(PAPER, slides, Result(text="a", pages=7))  # one is hidden


SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "total": {"type": "number"},
            "currency": {"enum": ["EUR", "USD"]},
            "seller": {"$ref": "#/$defs/Party"},
            "lines": {"type": "array", "items": {"type": ["string", "null"]}},
        },
        "required": ["total", "seller"],
        "$defs": {"Party": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }
)


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"total": None},
        {"total": None, "seller": {"name": None}, "lines": []},
        {"seller": {"name": "  "}, "lines": [None, ""]},
    ],
)
def test_data_without_a_value_is_none(found):
    with pytest.raises(NotAsOrdered, match="no data"):
        accept(DATA, GenerationRequest(prompt=SCHEMA), Result(text=json.dumps(found)))


@pytest.mark.parametrize(
    "found",
    [
        {"total": "12 EUR"},
        {"total": True},
        {"total": 1, "currency": "GBP"},
        {"total": 1, "seller": "Acme"},
        {"total": 1, "seller": {"name": 7}},
        {"total": 1, "lines": ["a", 2]},
        {"answer": 1},
    ],
)
def test_data_that_does_not_follow_the_schema_is_not_what_was_ordered(found):
    with pytest.raises(NotAsOrdered, match="schema"):
        accept(DATA, GenerationRequest(prompt=SCHEMA), Result(text=json.dumps(found)))


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        (SCHEMA, {"total": 12.5}),
        (SCHEMA, {"total": None, "seller": {"name": "Acme", "city": "Oslo"}, "more": 1}),
        (SCHEMA, {"total": 0, "currency": None, "lines": ["a", None]}),
        ("Which total?", {"answer": "", "found": False, "quotes": []}),
        ("Which damages?", {"damages": []}),
    ],
)
def test_a_field_may_be_missing_or_null_if_another_has_a_value(prompt, found):
    kept = accept(DATA, GenerationRequest(prompt=prompt), Result(text=json.dumps(found)))
    assert kept.text_media_type == "application/json"


TEXT = {"type": "string"}
COUNT = {"type": "integer"}
OPEN_ROOTS = {
    "patternProperties": {"^item_": TEXT},
    "additionalProperties": TEXT,
    "unevaluatedProperties": {},
    "dependentSchemas": {"item_1": {"properties": {"item_2": TEXT}}},
    **{key: [{"properties": {"item_1": TEXT}}] for key in ("allOf", "anyOf", "oneOf")},
    "if": {"properties": {"item_1": TEXT}},
    "$ref": "#/$defs/Item",
}


def schema_of(**keywords):
    named = {"type": "object", "properties": {"total": COUNT}}
    return json.dumps(named | {"$defs": {"Item": {"properties": {"item_1": TEXT}}}} | keywords)


@pytest.mark.parametrize("keyword", OPEN_ROOTS)
def test_a_root_may_have_fields_beside_its_properties(keyword):
    prompt = schema_of(**{keyword: OPEN_ROOTS[keyword]})
    assert accept(DATA, order_of(prompt), Result(text='{"item_1": "Bolt"}'))


@pytest.mark.parametrize("closed", [{}, {"additionalProperties": False}, {"if": False}])
def test_a_root_without_other_fields_has_one_of_its_properties(closed):
    with pytest.raises(NotAsOrdered, match="none of the fields"):
        accept(DATA, order_of(schema_of(**closed)), Result(text='{"item_1": "Bolt"}'))


ROWS = {"type": "array", "prefixItems": [TEXT, COUNT], "items": {"type": "boolean"}}


@pytest.mark.parametrize(
    ("row", "is_right"),
    [(["Bolt", 7], True), (["Bolt", 7, True], True), (["Bolt"], True), (["Bolt", 7, "x"], False)],
)
def test_items_of_a_list_begin_after_its_prefix(row, is_right):
    prompt = schema_of(properties={"rows": {"type": "array", "items": ROWS}})
    found = Result(text=json.dumps({"rows": [row]}))
    if is_right:
        assert accept(DATA, order_of(prompt), found).text == found.text
    else:
        with pytest.raises(NotAsOrdered, match="an entry of a list is not of type boolean"):
            accept(DATA, order_of(prompt), found)


def test_a_schema_takes_no_time_that_the_data_does_not():
    """References that double at each step, and a pattern that takes years."""
    steps = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(60)}
    slow = {"type": "string", "pattern": "^(a+)+$"}
    schema = {
        "type": "object",
        "properties": {"a": slow, "b": {"$ref": "#/$defs/s0"}, "c": {"$ref": "#/$defs/loop"}},
        "$defs": {**steps, "s60": {}, "loop": {"$ref": "#/$defs/loop"}},
    }
    found = json.dumps({"a": "a" * 60 + "!", "b": 1, "c": 1})
    assert accept(DATA, GenerationRequest(prompt=json.dumps(schema)), Result(text=found))


def test_long_json_is_searched_for_a_value_too():
    long = json.dumps({"text": "a" * 1_100_000})
    assert accept(DATA, order(), Result(text=long)).text == long
    with pytest.raises(NotAsOrdered):
        accept(DATA, order(), Result(text='{"a": null' + " " * 1_100_000 + "}"))
