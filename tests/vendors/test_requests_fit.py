"""Each request of an adapter fits the types of its vendor's client; an unknown field fails."""

import typing

import pytest
from google.genai import types as genai
from llama_cloud.types import extract_create_params, parsing_create_params
from mistralai.client.models import OCRRequest
from openai.types.image_generate_params import ImageGenerateParamsNonStreaming
from pydantic import TypeAdapter

import gateway_gemini
import gateway_llamaparse
import gateway_mistral
import gateway_openai
from tests.proof.kit.test_kit_gemini import GeminiApi
from tests.proof.kit.test_kit_llamaparse import LlamaExtractApi, LlamaParseApi
from tests.proof.kit.test_kit_mistral import MistralExtractApi
from tests.proof.kit.test_kit_openai import OpenAIApi
from tests.vendors.orders import documents_of, orders, pictures_of

# OpenAI documents the pixels of gpt-image-2 and later.
_LEAST_PIXELS, _MOST_PIXELS, _LONGEST_SIDE = 655_360, 8_294_400, 3_840


def fits(kind, body):
    """Assert that a body has fields of a TypedDict only, each with a value of its type."""
    hints = typing.get_type_hints(kind)
    assert set(body) <= set(hints)
    for name, value in body.items():
        TypeAdapter(hints[name]).validate_python(value)


def fits_openai(body):
    # Another server than OpenAI's gets `response_format`, which OpenAI's newer models refuse.
    fits(ImageGenerateParamsNonStreaming, body)
    width, height = map(int, body["size"].split("x"))
    assert width % 16 == height % 16 == 0
    assert max(width, height) <= _LONGEST_SIDE
    assert _LEAST_PIXELS <= width * height <= _MOST_PIXELS


def fits_gemini(body):
    assert set(body) == {"contents", "generationConfig"}
    for content in body["contents"]:
        # Google's types refuse fields that they do not have.
        genai.Content.model_validate(content)
    config = body["generationConfig"]
    read = genai.GenerationConfig.model_validate(
        {name: value for name, value in config.items() if name != "imageConfig"}
    )
    assert read.response_modalities == [genai.Modality.IMAGE]
    picture = genai.ImageConfig.model_validate(config["imageConfig"])
    assert picture.model_dump(exclude_none=True, by_alias=True) == config["imageConfig"]


def fits_mistral(body):
    assert set(body) <= set(OCRRequest.model_fields)
    OCRRequest.model_validate(body)


def fits_llamaparse(body):
    fits(parsing_create_params.ParsingCreateParams, body)


def fits_llama_extract(body):
    fits(extract_create_params.ExtractCreateParams, body)


class EveryGeminiApi(GeminiApi):
    """Has every model."""

    submit = r"POST /v1(beta)?/models/[^/]+:generateContent"


@pytest.mark.parametrize("adapter", ["openai"])
async def test_pictures_of_openai(adapter, begin):
    values = {"openai_image_resolutions": ("1K", "2K", "4K")}
    sent = await orders(
        begin(OpenAIApi()), gateway_openai, "openai-image".__eq__, pictures_of, **values
    )
    for ask in sent:
        fits_openai(ask.json)


@pytest.mark.parametrize("adapter", ["gemini"])
async def test_pictures_and_edits_of_gemini(adapter, begin):
    sent = await orders(begin(EveryGeminiApi()), gateway_gemini, bool, pictures_of)
    for ask in sent:
        fits_gemini(ask.json)


@pytest.mark.parametrize("adapter", ["mistral"])
async def test_documents_and_their_data_of_mistral(adapter, begin):
    sent = await orders(begin(MistralExtractApi()), gateway_mistral, bool, documents_of)
    for ask in sent:
        fits_mistral(ask.json)


@pytest.mark.parametrize("adapter", ["llamaparse"])
@pytest.mark.parametrize(
    ("api", "slug", "check"),
    [
        (LlamaParseApi, "llamaparse", fits_llamaparse),
        (LlamaExtractApi, "llama-extract", fits_llama_extract),
    ],
)
async def test_documents_and_their_data_of_llama(adapter, api, slug, check, begin):
    fake = begin(api(), "accepted")
    for ask in await orders(fake, gateway_llamaparse, slug.__eq__, documents_of):
        check(ask.json)


@pytest.mark.parametrize("adapter", ["openai"])
def test_a_field_or_value_that_the_client_does_not_know_fails(adapter):
    order = {"prompt": "a", "size": "1024x1024"}
    fits_openai(order)
    with pytest.raises(AssertionError):
        fits_openai(order | {"colour": "red"})
    with pytest.raises(ValueError, match="bmp"):
        fits_openai(order | {"output_format": "bmp"})
