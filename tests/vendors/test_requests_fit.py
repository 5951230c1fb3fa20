"""Each adapter's requests fit the types of its vendor's client; an unknown field fails.

Black Forest Labs have no client: types from their OpenAPI document replace it.
"""

import base64
import typing

import azure.ai.documentintelligence as azure
import httpx
import pytest
from azure.core.credentials import AzureKeyCredential
from google.genai import types as genai
from llama_cloud.types import extract_create_params, parsing_create_params
from mistralai.client.models import OCRRequest
from openai.types.image_edit_params import ImageEditParamsNonStreaming
from openai.types.image_generate_params import ImageGenerateParamsNonStreaming
from pydantic import TypeAdapter
from werkzeug import Request

import gateway_azure_documents
import gateway_bfl
import gateway_gemini
import gateway_llamaparse
import gateway_mistral
import gateway_openai
from gateway_azure_documents.settings import AzureDocumentsSettings
from tests.proof.kit.test_kit_azure_documents import AzureApi
from tests.proof.kit.test_kit_bfl import BflApi
from tests.proof.kit.test_kit_gemini import GeminiApi
from tests.proof.kit.test_kit_llamaparse import LlamaExtractApi, LlamaParseApi
from tests.proof.kit.test_kit_mistral import MistralExtractApi
from tests.proof.kit.test_kit_openai import OpenAIApi, OpenAIEditsApi
from tests.vendors import bfl
from tests.vendors.orders import documents_of, orders, pictures_of

# OpenAI documents the pixels of gpt-image-2 and later.
_MIN_PIXELS, _MAX_PIXELS, _LONGEST_SIDE = 655_360, 8_294_400, 3_840


def fits(kind, body):
    """Check that a body has only fields of a TypedDict, each with a value of its type."""
    hints = typing.get_type_hints(kind)
    assert set(body) <= set(hints)
    for name, value in body.items():
        TypeAdapter(hints[name]).validate_python(value)


def fits_openai(body):
    # Other servers than OpenAI's get `response_format`, which newer models of OpenAI refuse.
    fits(ImageGenerateParamsNonStreaming, body)
    fits_sizes_of_openai(body["size"])


def fits_sizes_of_openai(size):
    width, height = map(int, size.split("x"))
    assert width % 16 == height % 16 == 0
    assert max(width, height) <= _LONGEST_SIDE
    assert _MIN_PIXELS <= width * height <= _MAX_PIXELS


def fits_openai_edit(ask):
    """Check the form of an edit, whose values are text."""
    form = Request.from_values(
        method="POST", data=ask.body, content_type=ask.headers["content-type"]
    )
    fits(ImageEditParamsNonStreaming, form.form.to_dict())
    assert len(form.form.to_dict(flat=False)) == len(form.form.to_dict())
    ((name, picture),) = form.files.items()
    assert name == "image"
    assert picture.mimetype == "image/png"
    form.close()
    if form.form["size"] != "auto":
        fits_sizes_of_openai(form.form["size"])


def fits_bfl(ask):
    body = ask.json
    bfl.INPUTS[ask.path.rpartition("/")[2]].model_validate(body)
    if "width" in body:
        # According to its documentation; its OpenAPI document does not mention it.
        assert body["width"] % 16 == body["height"] % 16 == 0
        assert body["width"] * body["height"] <= 4_000_000


def fits_gemini(body):
    assert set(body) == {"contents", "generationConfig"}
    for content in body["contents"]:
        # Google's types refuse unknown fields.
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


class EveryBflApi(BflApi):
    """Has every model."""

    submit = r"POST /v1/flux-[^/]+"


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


@pytest.mark.parametrize("adapter", ["openai"])
@pytest.mark.parametrize("model", ["gpt-image-2", "gpt-image-2.5-flare"])
async def test_edits_of_openai(adapter, model, begin):
    values = {"openai_image_resolutions": ("1K", "2K", "4K"), "openai_edit_model": model}
    fake = begin(OpenAIEditsApi())
    for ask in await orders(
        fake, gateway_openai, "openai-image-edit".__eq__, pictures_of, **values
    ):
        fits_openai_edit(ask)


@pytest.mark.parametrize("adapter", ["bfl"])
async def test_pictures_and_edits_of_bfl(adapter, begin):
    sent = await orders(begin(EveryBflApi(), "accepted"), gateway_bfl, bool, pictures_of)
    for ask in sent:
        fits_bfl(ask)
    assert {ask.path.rpartition("/")[2] for ask in sent} == set(bfl.INPUTS)


@pytest.mark.parametrize("adapter", ["bfl"])
@pytest.mark.parametrize("end", ["waiting", "made", "nothing", "moderated", "failed", "lost"])
def test_answers_of_the_fake_of_bfl(adapter, end, begin):
    fake = begin(BflApi(), "accepted", jobs=end)
    task = httpx.post(f"{fake.url}/v1/flux-2-pro", json={"prompt": "a boat"}).json()
    answer = httpx.get(bfl.AsyncResponse.model_validate(task).polling_url).json()
    assert bfl.ResultResponse.model_validate(answer).id == task["id"]


@pytest.mark.parametrize("adapter", ["azure-documents"])
async def test_documents_of_azure_are_sent_as_its_client_sends_them(adapter, begin):
    ours = tuple(
        await orders(
            fake := begin(AzureApi(), "accepted"), gateway_azure_documents, bool, documents_of
        )
    )
    with azure.DocumentIntelligenceClient(fake.url, AzureKeyCredential("k")) as client:
        for ask in ours:
            client.begin_analyze_document(
                "prebuilt-layout",
                azure.models.AnalyzeDocumentRequest(
                    bytes_source=base64.b64decode(ask.json["base64Source"])
                ),
                pages=ask.query.get("pages"),
                output_content_format="markdown",
                polling_interval=0,
            ).result()
            theirs = fake.submitted[-1]
            assert (ask.path, ask.query, ask.json) == (theirs.path, theirs.query, theirs.json)
    # A file whose pages were not counted is read up to the limit that its price is based on.
    most = f"1-{AzureDocumentsSettings().max_pages}"
    assert {ask.query.get("pages") for ask in ours} == {None, "1-1", "1-7", most}


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


@pytest.mark.parametrize("adapter", ["bfl"])
@pytest.mark.parametrize("wrong", [{"colour": "red"}, {"width": 32}, {"output_format": "jpg"}])
def test_a_field_or_value_that_bfl_does_not_describe_fails(adapter, wrong):
    order = {"prompt": "a", "width": 1024, "height": 1024}
    for model in ("flux-2-pro", "flux-2-klein-9b"):
        bfl.INPUTS[model].model_validate(order)
        with pytest.raises(ValueError, match=next(iter(wrong))):
            bfl.INPUTS[model].model_validate(order | wrong)
