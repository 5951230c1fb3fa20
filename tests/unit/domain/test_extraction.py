"""Prompts that are a JSON Schema, and the message for those that are not."""

import json

import pytest

from gateway.domain import MAX_PROMPT_CHARS
from gateway.domain.extraction import MAX_SCHEMA_DEPTH, MAX_SCHEMA_PARTS, read_schema

INVOICE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "number": {"type": "string", "description": "As printed."},
        "total": {"type": ["number", "null"]},
        "paid": True,
        "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
    },
    "required": ["number"],
    "additionalProperties": False,
    "$defs": {"Item": {"type": "object", "properties": {"of": {"$ref": "#/$defs/Item"}}}},
}

PART = 'a part of "properties"'
TYPES = "object, array, string, number, integer, boolean, null"


def schema_with(part):
    return json.dumps({"type": "object", "properties": {"a": part}})


def nested(levels):
    part = {"type": "string"}
    for _ in range(levels):
        part = {"type": "object", "properties": {"a": part}}
    return json.dumps(part)


def refusal(prompt):
    with pytest.raises(ValueError, match="begins as JSON, but is no JSON Schema") as refused:
        read_schema(prompt)
    return str(refused.value).removeprefix(
        "prompt begins as JSON, but is no JSON Schema of an object that can be used: "
    )


@pytest.mark.parametrize("prompt", ["What is the total?", '"Total", please', "null", "12", ""])
def test_other_words_are_a_question(prompt):
    assert read_schema(prompt) is None


def test_a_schema_is_returned_as_it_is():
    assert read_schema(f"\n {json.dumps(INVOICE, indent=2)}") == INVOICE


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("{", "it is not whole, valid JSON."),
        ("{name}?", "it is not whole, valid JSON."),
        ('{"type": "object", "properties": {"a": {}}, "x": NaN}', "it is not whole, valid JSON."),
        ('{"type": "object", "properties": {"\\ud800": {}}}', "it is not whole, valid JSON."),
        ('["total"]', "it is a list, not an object."),
        ('{"total": "number"}', 'its "type" is not "object".'),
        ('{"type": "object"}', 'it names no "properties".'),
        ('{"type": "object", "properties": {}}', 'it names no "properties".'),
        ('{"type": "object", "properties": []}', '"properties" of the schema is no object.'),
        (schema_with("number"), f"{PART} is no object."),
        (schema_with({"type": "money"}), f'the "type" of {PART} is none of {TYPES}.'),
        (schema_with({"type": [{}]}), f'the "type" of {PART} is none of {TYPES}.'),
        (schema_with({"description": 1}), f'"description" of {PART} is no text.'),
        (schema_with({"enum": "x"}), f'"enum" of {PART} is no list.'),
        (schema_with({"required": [1]}), f'"required" of {PART} is no list of names.'),
        (schema_with({"anyOf": {}}), f'"anyOf" of {PART} is no list.'),
        (schema_with({"items": 3}), f'"items" of {PART} is no object.'),
        (
            schema_with({"$ref": "https://a.example/b"}),
            'a "$ref" leads to none of its own "$defs".',
        ),
        (
            schema_with({"$ref": "#/$defs/B"}),
            'a "$ref" leads to none of its own "$defs".',
        ),
    ],
)  # fmt: skip
def test_a_broken_schema_is_refused_with_its_reason(prompt, reason):
    assert refusal(prompt) == reason


def test_depth_and_number_of_parts_are_bounded():
    assert read_schema(nested(MAX_SCHEMA_DEPTH - 1))
    deep = f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels."
    assert refusal(nested(MAX_SCHEMA_DEPTH)) == deep
    assert refusal("[" * MAX_PROMPT_CHARS) in (deep, "it is not whole, valid JSON.")
    example = f'{{"type": "object", "properties": {{"a": {{"const": {"[" * 400 + "]" * 400}}}}}}}'
    assert refusal(example) == deep
    wide = {"type": "object", "properties": {f"p{n}": {} for n in range(MAX_SCHEMA_PARTS)}}
    assert refusal(json.dumps(wide)) == f"it has more than {MAX_SCHEMA_PARTS} parts."
