"""The vendors' clients know the models of the tables."""

import inspect
import re
import typing

import pytest

import gateway_gemini.models
from gateway_openai.settings import OpenAISettings


def literals(kind):
    """Strings of a type that consists of nested literals."""
    if typing.get_origin(kind) is typing.Literal:
        return set(typing.get_args(kind))
    return set().union(*(literals(part) for part in typing.get_args(kind)), set())


def openai_models():
    from openai.types import image_model

    # Deprecated models are in a comment: `- "dall-e-2", "dall-e-3": This model was …`.
    rows = re.findall(r"^- (.+?):", inspect.getsource(image_model), re.MULTILINE)
    retired = set(re.findall(r'"(.+?)"', " ".join(rows)))
    assert retired < literals(image_model.ImageModel)
    return literals(image_model.ImageModel) - retired


def gemini_models():
    from google.genai._gaos.types.interactions import model

    return literals(model.Model)


@pytest.mark.parametrize("adapter", ["openai"])
def test_the_default_model_of_openai_is_known(adapter):
    assert OpenAISettings().image_model in openai_models()


@pytest.mark.parametrize("adapter", ["gemini"])
@pytest.mark.parametrize("slug", gateway_gemini.models.ON_SALE)
def test_a_model_of_gemini_is_known(adapter, slug):
    (name,) = [model.id for model in gateway_gemini.models.MODELS if model.slug == slug]
    assert name in gemini_models()
