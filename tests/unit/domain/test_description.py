"""The listing of each bundled endpoint describes exactly the requests that the parser accepts."""

import base64
import json

import attrs
import pytest
from jsonschema import Draft202012Validator

from gateway import Choice, Endpoint, PriceStep
from gateway.domain import MAX_FILE_BYTES
from gateway.domain.description import (
    choices_of,
    price_range,
    promised_pixels,
    request_example,
    request_schema,
    required_fields,
)
from gateway.domain.listing import bazaar_of
from gateway.errors import ValidationError
from gateway.plugins.installed import BUNDLED, OPTIONAL_PARTS
from gateway.web import bodies
from gateway_testing.facts import ENDPOINT
from tests.bundled_endpoints import bundled_catalog, bundled_endpoints
from tests.gateway.web.test_bodies import (
    BODIES,
    FILE,
    NO_BASE64,
    NO_STRINGS,
    OUT_OF_CHOICES,
    WRONG_NAMES,
)

PICTURE = attrs.evolve(
    ENDPOINT,
    slug="picture",
    aspect_ratio=Choice(values=("1:1", "16:9"), default="1:1"),
    output_format=Choice(values=("png", "jpg", "webp"), default="png"),
    resolution=Choice(values=("1K", "2K")),
    max_prompt_chars=10_000,
)
PAPER = attrs.evolve(
    ENDPOINT,
    slug="paper",
    capability="document-parsing",
    required_fields=("fileBase64", "fileName"),
    file_extensions=(".pdf", ".txt"),
    max_pages=20,
)
GOOD = {"prompt": "a boat"}


ENDPOINTS = list(bundled_endpoints().values())
EACH = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.slug)


def fits(body: object, schema: dict) -> bool:
    return Draft202012Validator(schema).is_valid(body)


def taken(body: dict | bytes, endpoint: Endpoint) -> bool:
    """Whether the real parser accepts a body at an endpoint."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        bodies.request_of(bodies.read(bodies.GenerationBody, data), endpoint)
    except ValidationError:
        return False
    return True


def test_every_bundled_provider_has_an_endpoint_here():
    selling = {registered.upstream.plugin for registered in bundled_catalog().everything()}
    sell_nothing = {
        "gateway_x402",
        "gateway_mpp",
        "gateway_usdc_direct",
        "gateway_local_settler",
        "gateway_facilitator_settler",
        "gateway_media",
        # Their models are hidden.
        "gateway_pictures",
        "gateway_speech",
        # It sells the workflows of an operator's folder.
        "gateway_comfyui",
        # It sells the APIs of an operator's files.
        "gateway_http",
        *OPTIONAL_PARTS,
    }
    assert selling == set(BUNDLED) - sell_nothing


@EACH
def test_every_example_is_taken_and_fits_its_schema(endpoint):
    schema = request_schema(endpoint)
    Draft202012Validator.check_schema(schema)
    example = request_example(endpoint)
    assert taken(example, endpoint)
    assert fits(example, schema)
    assert set(required_fields(endpoint)) <= set(example)


@EACH
def test_every_value_of_every_choice_is_taken_and_no_other_one(endpoint):
    schema, example = request_schema(endpoint), request_example(endpoint)
    offered = {
        name: field["enum"] for name, field in schema["properties"].items() if "enum" in field
    }
    assert set(offered) == set(choices_of(endpoint))
    for name, values in offered.items():
        for value in (*values, "nonsense"):
            body = example | {name: value}
            assert taken(body, endpoint) == fits(body, schema) == (value in values), (name, value)


@EACH
def test_the_longest_prompt_is_the_parsers(endpoint):
    schema, example = request_schema(endpoint), request_example(endpoint)
    limit = schema["properties"]["prompt"]["maxLength"]
    for letter in ("x", "\U0001f600"):
        for length in (limit, limit + 1):
            body = example | {"prompt": letter * length}
            assert taken(body, endpoint) == fits(body, schema) == (length == limit)


@EACH
def test_what_is_required_is_required_by_the_parser(endpoint):
    schema, example = request_schema(endpoint), request_example(endpoint)
    for name in schema["required"]:
        body = {field: value for field, value in example.items() if field != name}
        assert not taken(body, endpoint)
        assert not fits(body, schema)


def test_the_largest_file_fits_and_a_larger_one_does_not():
    schema = request_schema(PAPER)
    for size, right in ((MAX_FILE_BYTES, True), (MAX_FILE_BYTES + 3, False)):
        text = base64.b64encode(b"x" * size).decode()
        assert fits({"fileBase64": text, "fileName": "a.txt"}, schema) == right


# -- the schema refuses the bodies that the parser refuses

CHECKED_LATER = {
    "a lone surrogate",
    *(f"fileBase64 {text}" for text in NO_BASE64),
    # End of the test's name. The schema refuses the empty name and the long one.
    *(f"fileName {name}" for name in WRONG_NAMES if 0 < len(name) < 256),
    "a file where none is taken",
}


def read_json(data: bytes) -> object:
    """Read JSON as any parser does; `ValueError` if it is not JSON."""

    def refuse(name: str) -> object:
        raise ValueError(name)

    try:
        return json.loads(data.decode(), parse_constant=refuse)
    except RecursionError as error:
        raise ValueError from error


def parsed_bodies() -> dict[str, object]:
    found = {}
    for name, data in BODIES.items():
        # A schema does not limit nesting, and Python's decoder is limited only by its stack.
        if data.count(b"[") + data.count(b"{") > 100:
            continue
        try:
            found[name] = read_json(data)
        except ValueError:
            continue
    return found


PICTURES_REFUSED = parsed_bodies() | {
    **{f"{name} {value}": GOOD | {name: value} for name in OUT_OF_CHOICES for value in NO_STRINGS},
    **{
        f"{name} {str(value)[:9]}": GOOD | {name: value}
        for name, values in OUT_OF_CHOICES.items()
        for value in values
    },
    "a file where none is taken": GOOD | FILE,
}
PAPERS_REFUSED = {
    **{f"fileBase64 {text}": FILE | {"fileBase64": text} for text in (*NO_BASE64, "")},
    **{f"fileName {name}": FILE | {"fileName": name} for name in WRONG_NAMES},
    **{f"{name} {value}": FILE | {name: value} for name in FILE for value in NO_STRINGS},
}


@pytest.mark.parametrize("name", PICTURES_REFUSED)
def test_a_refused_body_of_a_picture_fails_the_schema_or_is_checked_later(name):
    body = PICTURES_REFUSED[name]
    assert not taken(BODIES.get(name, body), PICTURE)
    assert fits(body, request_schema(PICTURE)) == (name in CHECKED_LATER)


@pytest.mark.parametrize("name", PAPERS_REFUSED)
def test_a_refused_body_of_a_document_fails_the_schema_or_is_checked_later(name):
    body = PAPERS_REFUSED[name]
    assert not taken(body, PAPER)
    assert fits(body, request_schema(PAPER)) == (name in CHECKED_LATER)


def test_what_is_checked_later_is_what_this_test_names():
    assert set(PICTURES_REFUSED) | set(PAPERS_REFUSED) > CHECKED_LATER


# -- prices


def test_the_range_of_prices_takes_in_every_step():
    steps = (PriceStep(price_units=5, resolution="2K"), PriceStep(price_units=120, min_pages=9))
    assert price_range(attrs.evolve(PICTURE, price_units=50, price_steps=steps)) == (5, 120)
    assert price_range(attrs.evolve(PICTURE, price_units=50)) == (50, 50)
    by_page = attrs.evolve(PAPER, price_units=50, price_steps=(), price_per_page=20, max_pages=9)
    assert price_range(by_page) == (50, 180)
    assert price_range(attrs.evolve(by_page, max_pages=2)) == (50, 50)


def test_what_is_returned_may_be_changed():
    request_schema(PAPER)["properties"]["fileName"].clear()
    assert request_schema(PAPER)["properties"]["fileName"]["type"] == "string"


def test_offers_state_the_pixels_that_a_result_must_have():
    assert promised_pixels(PICTURE) == "pixels at least: 580,000 at 1K, 2,300,000 at 2K"
    declared = attrs.evolve(PICTURE, least_pixels={"1K": 900_000})
    stated = request_schema(declared)["properties"]["resolution"]["description"]
    assert stated == "Pixels at least: 900,000 at 1K, 2,300,000 at 2K."
    assert promised_pixels(attrs.evolve(PICTURE, resolution=Choice())) == ""
    assert promised_pixels(PAPER) == ""


@EACH
def test_a_402_has_room_for_the_fields_of_each_offer(endpoint):
    declared = bazaar_of(endpoint)["schema"]["properties"]["input"]["properties"]["body"]
    assert declared["properties"].keys() == request_schema(endpoint)["properties"].keys()
