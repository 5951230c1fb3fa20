"""The sandbox's extraction: fixed rules on ordinary documents, and on hostile ones."""

import asyncio
import json

import attrs
import pytest
from documents_files import request, sample_pdf

import gateway
import gateway_documents
from gateway import Settings
from gateway_documents.child.extraction import facts
from gateway_documents.extractor import DocumentExtractor
from gateway_documents.provider import DocumentParser

LETTER = b"""\
Invoice 7

Due: 30 October 2026
**Billed to:** Nordlicht B.V. **Date:** 2026-09-30
Paid: no
Total $ 9,479.50

| Item | Quantity | Price |
|---|---|---|
| Blend | 480 | $ 9.50 |
| Decaf | 96 | $ 10.25 |
"""
ITEM = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "quantity": {"type": "integer"}},
}


@pytest.fixture(scope="module")
def extractor():
    extractor = DocumentExtractor(DocumentParser(pictures=None))
    yield extractor
    asyncio.run(extractor.close())


async def extract(extractor, prompt, data=LETTER, name="a.md"):
    asked = attrs.evolve(request(name, data), prompt=prompt)
    return json.loads((await extractor.submit(asked, None)).text)


async def fill(extractor, data=LETTER, **properties):
    schema = {"type": "object", "properties": properties, "$defs": {"Item": ITEM}}
    return await extract(extractor, json.dumps(schema), data)


def test_it_is_on_sale_only_in_the_sandbox_and_says_what_it_is():
    sold = []
    gateway_documents.register_endpoints(lambda *pair: sold.append(pair), Settings(sandbox=True))
    (_, (endpoint, provider)) = sold
    assert (endpoint.slug, endpoint.capability) == ("sandbox-extract", "document-extraction")
    assert "not an AI model" in endpoint.title
    assert "not an AI model" in endpoint.description
    assert provider.traits.idempotent_submit


async def test_a_question_gets_the_values_whose_labels_it_names_and_all_else(extractor):
    found = await extract(extractor, "When is it due, and what is the total?")
    assert found["method"] == "fixed rules, not an AI model"
    assert found["matches"] == {"Due": "30 October 2026", "Total": "$ 9,479.50"}
    assert found["title"] == "Invoice 7"
    assert found["values"]["Billed to"] == "Nordlicht B.V."
    assert found["dates"] == ["30 October 2026", "2026-09-30"]
    assert found["amounts"] == ["$ 9,479.50", "$ 9.50", "$ 10.25"]
    assert found["tables"][0][1] == {"Item": "Decaf", "Quantity": "96", "Price": "$ 10.25"}


def test_signs_that_markdown_escapes_are_read_without_backslashes():
    found = facts.find_facts("# 5 \\* 3 \\_a\\_\n\nName: a\\_b\\_c")
    assert (found.title, found.headings) == ("5 * 3 _a_", ["5 * 3 _a_"])
    assert found.values["Name"] == "a_b_c"


async def test_the_same_question_gets_the_same_answer(extractor):
    asked = [await extract(extractor, "due?", sample_pdf(), "a.pdf") for _ in range(2)]
    assert asked[0] == asked[1]
    assert asked[0]["title"] == "Quarterly Report"
    assert asked[0]["headings"][1:3] == ["Summary", "Sales by region"]


async def test_a_schema_is_filled_by_like_labels_and_with_null_otherwise(extractor):
    found = await fill(
        extractor,
        title={"type": "string"},
        due_date={"type": "string", "format": "date"},
        billedTo={"anyOf": [{"type": "null"}, {"type": "string"}]},
        invoice_total={"type": ["null", "number"]},
        paid={"type": "boolean"},
        vat={"type": "number"},
        dates={"type": "array", "items": {"type": "string"}},
        prices={"type": "array", "items": {"type": "number"}},
        items={"type": "array", "items": {"$ref": "#/$defs/Item"}},
        workers={"type": "array", "items": {"type": "object", "properties": {"age": {}}}},
        sender={"type": "object", "properties": {"name": {"type": "string"}}},
    )
    assert found == {
        "title": "Invoice 7",
        "due_date": "2026-10-30",
        "billedTo": "Nordlicht B.V.",
        "invoice_total": 9479.5,
        "paid": False,
        "vat": None,
        "dates": ["30 October 2026", "2026-09-30"],
        "prices": [9.5, 10.25],
        "items": [{"item": "Blend", "quantity": 480}, {"item": "Decaf", "quantity": 96}],
        "workers": None,
        "sender": {"name": None},
    }


async def test_a_value_of_another_kind_is_null(extractor):
    found = await fill(
        extractor,
        total={"type": "integer"},
        due={"type": "number", "enum": [1, 2]},
        paid={"type": "string", "enum": ["yes", "no"]},
    )
    assert found == {"total": None, "due": None, "paid": "no"}


async def test_a_schema_that_refers_to_itself_ends(extractor):
    names = "abcdefgh"
    schema = {
        "type": "object",
        "properties": {name: {"$ref": "#/$defs/R"} for name in names},
        "$defs": {
            "R": {"type": "object", "properties": {one: {"$ref": "#/$defs/R"} for one in names}}
        },
    }
    found = await extract(extractor, json.dumps(schema))
    assert set(found) == set(names)


@pytest.mark.full
@pytest.mark.parametrize(
    "text",
    [
        "a: " * 1_500_000,
        "**a" * 1_500_000,
        "|a|b|\n|---|---|\n" * 300_000,
        "$ 1," * 1_000_000,
        "\n".join(f"L{n}: v" for n in range(400_000)),
    ],
    ids=["colons", "stars", "tables", "amounts", "labels"],
)
async def test_a_hostile_document_is_answered_too(extractor, text):
    found = await extract(extractor, "a question", text.encode(), "a.txt")
    assert len(found["values"]) <= 1_000
    assert sum(map(len, found["tables"])) <= 1_000


async def test_a_file_that_the_parser_refuses_is_refused_before_payment(extractor):
    with pytest.raises(gateway.InvalidInput, match="The file is empty"):
        await extractor.validate(request("a.txt", b" "), gateway_documents.EXTRACT)
