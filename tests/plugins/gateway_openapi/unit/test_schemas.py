"""The schemas accept what the parser accepts, and the example of an answer."""

import json

import pytest
from jsonschema import Draft202012Validator

from gateway.domain.description import started_example
from gateway.errors import ValidationError
from gateway.web import bodies
from gateway_openapi.schemas import direct_request_schema, started_schema
from tests.gateway.web.test_bodies import FILE, HASH, NO_STRINGS
from tests.unit.domain.test_description import GOOD, PAPER, PICTURE, fits

DIRECT = {"slug": "picture", "txHash": HASH, **GOOD}
DIRECT_REFUSED = {
    "no slug": {"txHash": HASH, **GOOD},
    "no hash": {"slug": "picture", **GOOD},
    "neither prompt nor file": {"slug": "picture", "txHash": HASH},
    "a file without a name": {"slug": "paper", "txHash": HASH, "fileBase64": "aGk="},
    **{f"slug {value}": DIRECT | {"slug": value} for value in NO_STRINGS},
    **{
        f"txHash {value}": DIRECT | {"txHash": value}
        for value in (*NO_STRINGS, "", "0x12", "ab" * 32)
    },
    **{
        f"payerSignature {value}": DIRECT | {"payerSignature": value}
        for value in (5, "", "0x", "0x123", "0xzz", "12", "0x" + "ab" * 4097)
    },
    **{f"{name} bad": DIRECT | {name: "2:1"} for name in ("aspect_ratio", "output_format")},
}


@pytest.mark.parametrize("name", DIRECT_REFUSED)
def test_a_refused_body_of_the_direct_flow_fails_its_schema(name):
    schema = direct_request_schema([PICTURE, PAPER])
    with pytest.raises(ValidationError):
        bodies.read(bodies.DirectBody, json.dumps(DIRECT_REFUSED[name]).encode())
    assert not fits(DIRECT_REFUSED[name], schema)


def test_a_body_of_the_direct_flow_that_is_taken_fits_its_schema():
    schema = direct_request_schema([PICTURE, PAPER])
    Draft202012Validator.check_schema(schema)
    for body in (DIRECT, {"slug": "paper", "txHash": HASH, **FILE}):
        bodies.read(bodies.DirectBody, json.dumps(body).encode())
        assert fits(body, schema)
    signed = direct_request_schema([PICTURE], must_sign=True)
    assert not fits(DIRECT, signed)
    assert fits(DIRECT | {"payerSignature": "0x" + "ab" * 65}, signed)


def test_the_example_of_an_answer_fits_the_answers_schema():
    started = dict(started_example()) | {"message": "The generation has started."}
    assert fits(started, started_schema())
    assert not fits(started | {"success": False}, started_schema())
