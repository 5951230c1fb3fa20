"""Hashes of requests with a `callbackUrl`; requests without one keep their earlier hashes."""

import attrs
import pytest

from gateway.domain import Attachment, GenerationRequest
from gateway.web import bodies

PICTURE = GenerationRequest(
    prompt="a boat", aspect_ratio="1:1", output_format="png", resolution="1K"
)
PAPER = GenerationRequest(attachment=Attachment(name="a.pdf", data=b"%PDF"), pages=3)
HOOK = "https://buyer.example/hook"


# Made by the release before the field. Databases contain them, and buyers' programs sign them.
@pytest.mark.parametrize(
    ("request_", "slug", "expected"),
    [
        (PICTURE, "picture", "b6617454fd50a3316ad3737506417bb4e71ae5afb34dfe4bfd03cacde7219d8a"),
        (PAPER, "paper", "d643249c563592e43073c1e1000876d986bdc4e115e342e80cfb2adf24c57464"),
    ],
)
def test_a_request_without_it_keeps_its_fingerprint(request_, slug, expected):
    assert request_.fingerprint(slug) == expected


# What the price follows from, or the attachment's own hash.
LEFT_OUT = {"pages", "measured"}


def test_each_field_changes_the_fingerprint_or_is_left_out_on_purpose():
    changed = {
        "prompt": "a ship",
        "aspect_ratio": "3:2",
        "output_format": "jpeg",
        "resolution": "2K",
        "attachment": Attachment(name="a.pdf", data=b"%PDF"),
        "callback_url": HOOK,
        "pages": 4,
        "measured": {"seconds": 5.0},
    }
    names = {field.name for field in attrs.fields(GenerationRequest)}
    assert changed.keys() == names
    expected = PICTURE.fingerprint("picture")
    for name, value in changed.items():
        is_same = attrs.evolve(PICTURE, **{name: value}).fingerprint("picture") == expected
        assert is_same == (name in LEFT_OUT), name


def test_a_body_without_it_keeps_its_request_hash():
    body = bodies.GenerationBody(prompt="é: a boat", aspect_ratio="1:1")
    expected = "6e5fa4cb761232f3b431b72e0d255ee8d8231cee1bd1d44f290e3fef31b32164"
    assert bodies.request_hash(body).hex() == expected


def test_each_address_is_another_request():
    hooks = [None, HOOK, HOOK + "2"]
    requests = [GenerationRequest(prompt="a", callback_url=hook) for hook in hooks]
    assert len({request.fingerprint("picture") for request in requests}) == 3
    sent = [bodies.GenerationBody(prompt="a", callback_url=hook) for hook in hooks]
    assert len({bodies.request_hash(body) for body in sent}) == 3
    assert HOOK not in repr(requests) + repr(sent)
