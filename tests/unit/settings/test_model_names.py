"""Settings that name slugs and models: each mistake is one sentence that names the setting."""

import pytest

from gateway import Settings, SettingsError
from gateway.plugins.manager import PluginManager
from gateway.settings import load_settings

LONG = "vendor/" + "long-name-" * 14
PRESET = {
    "GATEWAY_AZURE_DOCUMENTS_ENDPOINT": "https://a.cognitiveservices.azure.com",
    "GATEWAY_AZURE_DOCUMENTS_KEY": "k",
    "GATEWAY_OPENAI_API_KEY": "k",
    "GATEWAY_LLAMAPARSE_API_KEY": "k",
    "GATEWAY_MISTRAL_API_KEY": "k",
}
VENDORS = ("BFL", "FAL", "GEMINI", "KIE", "OPENROUTER", "REPLICATE")


def mistake_in(monkeypatch, **values: str) -> str:
    """Return the sentence that stops a start with these settings."""
    given = PRESET | {f"GATEWAY_{vendor}_API_KEY": "k" for vendor in VENDORS}
    given |= {"GATEWAY_WALLET": "0x1111111111111111111111111111111111111111"}
    for name, value in (
        given | {f"GATEWAY_{name}": value for name, value in values.items()}
    ).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        PluginManager().catalog(load_settings())
    return str(caught.value)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("model", [LONG, "///", "日本語", "a" * 101])
def test_a_model_whose_slug_is_too_long_or_empty(monkeypatch, vendor, model):
    sentence = mistake_in(monkeypatch, **{f"{vendor}_MODELS": f"{model}=9"})
    assert sentence.startswith(f"GATEWAY_{vendor}_MODELS names ")
    assert "a slug is at most 100 of a-z and 0-9" in sentence
    assert LONG not in sentence


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("models", ["a b=9", "Some/Model=9,some-model=9", "one=9,one=8", LONG])
def test_a_list_of_models_that_cannot_be_on_sale(monkeypatch, vendor, models):
    sentence = mistake_in(monkeypatch, **{f"{vendor}_MODELS": models})
    assert sentence.startswith(f"GATEWAY_{vendor}_MODELS names ")
    assert "Example: " in sentence


@pytest.mark.parametrize("name", ["a" * 92, "4-image=9,gemini-4-image-edit"])
def test_a_slug_for_edits_that_is_too_long_or_taken(monkeypatch, name):
    assert "Check GATEWAY_GEMINI_MODELS." in mistake_in(monkeypatch, GEMINI_MODELS=f"{name}=9")


@pytest.mark.parametrize("value", ["", " "])
@pytest.mark.parametrize("name", ["AZURE_DOCUMENTS_MODEL", "MISTRAL_MODEL", "OPENAI_IMAGE_MODEL"])
def test_an_empty_name_of_a_model(monkeypatch, name, value):
    sentence = mistake_in(monkeypatch, **{name: value})
    assert sentence == f"GATEWAY_{name} is empty. Name a model, or unset it."


@pytest.mark.parametrize("name", ["LLAMAPARSE_TIER", "LLAMAPARSE_EXTRACT_TIER"])
def test_a_tier_that_does_not_exist(monkeypatch, name):
    assert mistake_in(monkeypatch, **{name: LONG}).startswith(f"GATEWAY_{name} is not right: ")


@pytest.mark.parametrize("field", ["model", "title", "description"])
@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_of_an_endpoint(monkeypatch, tmp_path, field, text):
    file = tmp_path / "gateway.toml"
    file.write_text(f"[endpoints.openai-image]\n{field} = '{text}'\n")
    sentence = mistake_in(monkeypatch, CONFIG=str(file))
    assert sentence.startswith(f"[endpoints.openai-image] {field} is empty.")


def test_a_table_of_a_slug_that_is_no_slug(monkeypatch, tmp_path):
    file = tmp_path / "gateway.toml"
    file.write_text(f"[endpoints.{'a' * 150}]\nprice = '1'\n")
    assert "names no endpoint" in mistake_in(monkeypatch, CONFIG=str(file))


def test_a_blank_model_for_edits_counts_as_none():
    values = {"openai_api_key": "k", "openai_edit_model": " "}
    catalog = PluginManager().catalog(Settings(plugin_values=values))
    assert catalog["openai-image-edit"].endpoint.model == catalog["openai-image"].endpoint.model
