"""A buyer's choices or input never take an endpoint off sale: each adapter reports the cause.

The engine's reaction is tested in tests/unit/tasks/test_buyers_choices.py.
"""

import pytest
import test_bfl
import test_fal
import test_llama_extract
import test_llamaparse
import test_mistral
import test_mistral_extraction
import test_openrouter
import test_replicate
from gemini_site import SUBMIT, Google
from openai_site import PATH, CompatibleServer

from gateway import AccountProblem, InvalidInput


def _fastapi(*place, kind="value_error"):
    return (422, {"detail": [{"loc": ["body", *place], "type": kind, "msg": "…"}]})


def _openai(param):
    return (400, {"error": {"code": "invalid_value", "param": param, "message": "…"}})


def _openrouter(message):
    return (400, {"error": {"code": 400, "message": message}})


def _replicate(field):
    return (422, {"title": "Input validation failed", "invalid_fields": [{"field": field}]})


def _gemini(field=None, message="…"):
    violation = {"field": field, "description": "…"}
    kind = "type.googleapis.com/google.rpc.BadRequest"
    details = [{"@type": kind, "fieldViolations": [violation]}] if field else []
    error = {"code": 400, "status": "INVALID_ARGUMENT", "message": message, "details": details}
    return (400, {"error": error})


FAL = (test_fal.Fal, test_fal.MODEL)
BFL = (test_bfl.BlackForestLabs, test_bfl.PRO)
REPLICATE = (test_replicate.Replicate, test_replicate.FLUX)
OPENROUTER = (test_openrouter.OpenRouter, test_openrouter.PATH)
OPENAI = (CompatibleServer, PATH)
GEMINI = (Google, SUBMIT)
REFUSALS = {
    # Caused by the buyer's choice.
    "OpenAI: size": (OPENAI, _openai("size"), "choice"),
    "OpenAI: format": (OPENAI, _openai("output_format"), "choice"),
    "fal: ratio": (FAL, _fastapi("aspect_ratio"), "choice"),
    "fal: resolution": (FAL, _fastapi("resolution"), "choice"),
    "fal: format": (FAL, _fastapi("output_format"), "choice"),
    "BFL: width": (BFL, _fastapi("width"), "choice"),
    "BFL: format": (BFL, _fastapi("output_format"), "choice"),
    "Replicate: ratio": (REPLICATE, _replicate("input.aspect_ratio"), "choice"),
    "Replicate: format": (REPLICATE, _replicate("input.output_format"), "choice"),
    "OpenRouter: ratio": (OPENROUTER, _openrouter("Unsupported aspect_ratio 16:9"), "choice"),
    "OpenRouter: resolution": (OPENROUTER, _openrouter("The resolution is too low"), "choice"),
    "Gemini: ratio": (
        GEMINI,
        _gemini("generation_config.image_config.aspect_ratio"),
        "choice",
    ),
    "Gemini: ratio in words": (
        GEMINI,
        _gemini(message="Aspect ratio is not enabled for this model"),
        "choice",
    ),
    # Not caused by a buyer.
    "OpenAI: quality": (OPENAI, _openai("quality"), "model"),
    "Replicate: a field": (REPLICATE, _replicate("input.seed"), "model"),
    "OpenRouter: a parameter": (OPENROUTER, _openrouter("Unsupported parameter: n"), "model"),
    "Gemini: modalities": (GEMINI, _gemini("generation_config.response_modalities"), "model"),
    "Gemini: key": (GEMINI, _gemini(message="API key not valid."), "vendor"),
}


@pytest.mark.parametrize(("asked", "answer", "scope"), REFUSALS.values(), ids=REFUSALS)
async def test_a_refused_field_says_whether_a_buyer_chose_it(httpserver, asked, answer, scope):
    vendor, path = asked
    site = vendor(httpserver)
    site.answers("POST", path, answer)
    with pytest.raises(AccountProblem) as caught:
        await site.submit()
    assert caught.value.scope == scope


@pytest.mark.parametrize("name", ["model", "schema"])
async def test_a_property_of_a_buyers_schema_is_no_field_of_mistrals(httpserver, name):
    site = test_mistral_extraction.Extraction(httpserver)
    place = ("document_annotation_format", "json_schema", "schema", "properties", name)
    site.answers("POST", test_mistral.PATH, _fastapi(*place))
    with pytest.raises(InvalidInput):
        await site.submit()


@pytest.mark.parametrize("name", ["tier", "version", "parse_tier"])
async def test_a_property_of_a_buyers_schema_is_no_field_of_llamaextracts(httpserver, name):
    site = test_llama_extract.LlamaExtract(httpserver)
    site.answers("POST", test_llamaparse.FILES, (200, test_llamaparse.FILE))
    place = ("configuration", "data_schema", "properties", name)
    site.answers("POST", test_llama_extract.EXTRACT, _fastapi(*place))
    with pytest.raises(InvalidInput):
        await site.submit()


async def test_more_pages_than_llamaextract_takes_are_the_documents(httpserver):
    site = test_llama_extract.LlamaExtract(httpserver)
    site.answers("POST", test_llamaparse.FILES, (200, test_llamaparse.FILE))
    site.answers("POST", test_llama_extract.EXTRACT, _fastapi("configuration", "max_pages"))
    with pytest.raises(InvalidInput):
        await site.submit()
