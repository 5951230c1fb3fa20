"""Offers, providers and sections that are refused with a sentence."""

import attrs
import pytest

from gateway import Choice, PriceStep
from gateway.domain import Traits
from gateway.plugins.registration import endpoint_offer, section_offer
from gateway.settings import setting
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider

_EDITING = {
    "capability": "image-editing",
    "required_fields": ("prompt", "fileBase64", "fileName"),
    "file_extensions": (".png", ".webp"),
}


_EXTRACTION = {"capability": "document-extraction", "file_extensions": (".pdf",)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slug": "a/b"}, "a slug is"),
        ({"slug": ""}, "a slug is"),
        ({"slug": "a" * 101}, "a slug is"),
        ({"title": " "}, "title is empty"),
        ({"model": ""}, "model is empty"),
        ({"capability": "Text to image"}, "capability 'Text to image' is not spelled like"),
        ({"price_units": 0.02}, "price_units 0.02 is no whole number"),
        ({"price_steps": (PriceStep(price_units=1),)}, "neither a resolution nor min_pages"),
        ({"price_steps": (PriceStep(price_units=1, resolution="8K"),)}, "resolution '8K'"),
        ({"price_steps": (PriceStep(price_units=1, min_pages=2),)}, "no file is taken"),
        (
            {
                "resolution": Choice(values=("1K", "2K"), default="1K"),
                "price_steps": (PriceStep(price_units=1, resolution="1K"),),
            },
            "for the default resolution, whose price is price_units",
        ),
        ({"price_per_page": 0}, "price_per_page 0 is not more than 0"),
        ({"price_per_page": 0.01}, "price_per_page 0.01 is not more than 0"),
        ({"price_per_page": 1}, "no file is taken"),
        ({"price_per_page": 1, "file_extensions": (".pdf",)}, "needs max_pages"),
        (
            {
                "price_per_page": 1,
                "max_pages": 9,
                "file_extensions": (".pdf",),
                "price_steps": (PriceStep(price_units=1, min_pages=2),),
            },
            "choose one of the two",
        ),
        (_EDITING | {"price_per_page": 1}, "a picture has no pages"),
        ({"required_fields": ("prompts",)}, "required field 'prompts'"),
        ({"required_fields": ("fileBase64",)}, "file_extensions is empty"),
        ({"capability": "image-editing", "required_fields": ()}, "needs prompt and fileBase64"),
        ({"capability": "image-editing"}, "needs fileBase64 and fileName"),
        (_EDITING | {"required_fields": ("fileName",)}, "needs prompt: name it in required_fields"),
        (_EDITING | {"file_extensions": (".jpg",)}, "file_extensions are .png and any of"),
        (_EDITING | {"file_extensions": (".png", ".gif")}, "file_extensions are .png and any of"),
        (_EDITING | {"max_pages": 3}, "a picture has no pages"),
        ({"capability": "document-extraction"}, "needs fileBase64 and fileName"),
        (_EXTRACTION | {"required_fields": ()}, "document-extraction needs prompt: name it"),
        ({"file_extensions": ("pdf",)}, "file extension 'pdf'"),
        ({"file_extensions": (".PDF",)}, "file extension '.PDF'"),
        ({"aspect_ratio": Choice(values=("2:1",))}, "aspect_ratio '2:1'"),
        ({"output_format": Choice(values=("jpeg",))}, "output_format 'jpeg'"),
        ({"max_prompt_chars": 0}, "max_prompt_chars"),
        ({"max_prompt_chars": 10_001}, "max_prompt_chars"),
        ({"max_pages": 0}, "max_pages"),
        ({"max_picture_bytes": 0}, "max_picture_bytes"),
        ({"timeout_s": 0.0}, "timeout_s"),
    ],
)
def test_a_wrong_endpoint_is_one_sentence_with_its_slug(changes, message):
    endpoint = attrs.evolve(ENDPOINT, **changes)
    with pytest.raises(ValueError) as refused:
        endpoint_offer(endpoint, ScriptedProvider())
    assert str(refused.value).startswith(f"endpoint {endpoint.slug!r}: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "has no name"),
        ({"submit": None}, "has no method submit"),
        ({"submit": lambda self, request, job: None}, "submit is not an `async def`"),
        ({"health": lambda self: None}, "health is not an `async def`"),
        ({"traits": {"max_concurrency": 1}}, "traits is no gateway.Traits"),
        ({"traits": Traits(limits_pages=True), "validate": None}, "has no method validate"),
        ({"traits": Traits(max_concurrency=0)}, "traits.max_concurrency is no whole number"),
        ({"traits": Traits(max_concurrency=-1)}, "traits.max_concurrency is no whole number"),
        ({"traits": Traits(max_concurrency="4")}, "traits.max_concurrency is no whole number"),
        ({"traits": Traits(submits_per_minute=0)}, "traits.submits_per_minute is no whole"),
        ({"traits": Traits(submits_per_minute=-1)}, "traits.submits_per_minute is no whole"),
        ({"traits": Traits(submits_per_minute=0.5)}, "traits.submits_per_minute is no whole"),
    ],
)
def test_a_wrong_provider_is_one_sentence_with_the_slug(changes, message):
    provider = type("Wrong", (ScriptedProvider,), changes)()
    with pytest.raises(ValueError) as refused:
        endpoint_offer(ENDPOINT, provider)
    assert ENDPOINT.slug in str(refused.value)
    assert message in str(refused.value)


def test_a_right_offer_is_taken():
    provider = type("Right", (ScriptedProvider,), {"traits": Traits(max_concurrency=1)})()
    assert endpoint_offer(ENDPOINT, provider) == (ENDPOINT.slug, (ENDPOINT, provider))


@pytest.mark.parametrize(
    ("prefix", "fields", "message"),
    [
        ("Acme", {}, "a prefix is"),
        ("rpc", {"urls": setting("", "About.")}, "rpc_urls is a setting of the gateway itself"),
        ("acme", {"key": attrs.field(default="")}, "key is not made with gateway.setting"),
    ],
)
def test_a_wrong_section_is_one_sentence(prefix, fields, message):
    with pytest.raises(ValueError, match=message):
        section_offer(prefix, attrs.make_class("Section", fields, frozen=True))
