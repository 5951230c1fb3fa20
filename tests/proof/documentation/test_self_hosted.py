"""docs/self-hosted.md: its settings and addresses work unchanged."""

import re
from pathlib import Path

import attrs
import pytest

import gateway_openai
from gateway import GenerationRequest
from gateway.catalog.catalog import Catalog
from gateway.settings import Settings, load_settings
from gateway.vendors import base_url
from gateway_comfyui.folder import parse_workflow
from gateway_openai.settings import OpenAISettings

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "self-hosted.md").read_text("utf-8")
WORKFLOW, TOML = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
ADDRESSES = re.findall(r"\| `(http://[^`]+)` \|$", PAGE, re.MULTILINE)
NAMED = re.findall(r"\b(?:GATEWAY_)?(?:OPENAI|openai)_([A-Za-z_0-9]+)\b(?!/)", PAGE)


def sold(settings):
    """Return each endpoint on sale with its provider."""
    providers = {}
    catalog = Catalog(settings.endpoints)

    def register(endpoint, provider):
        catalog.register(endpoint, provider, "gateway_openai")
        providers[endpoint.slug] = provider

    gateway_openai.register_endpoints(register, settings)
    catalog.check_overrides()
    return [(endpoint, providers[endpoint.slug]) for endpoint in catalog]


def test_the_settings_sell_pictures_at_the_price_and_cost_of_the_page(tmp_path, monkeypatch):
    file = tmp_path / "gateway.toml"
    file.write_text(TOML, "utf-8")
    monkeypatch.setenv("GATEWAY_CONFIG", str(file))
    settings = load_settings(needs_wallet=False, data_dir=tmp_path)
    ((endpoint, provider),) = sold(settings)
    assert (endpoint.slug, endpoint.model) == ("openai-image", "Qwen/Qwen-Image")
    assert (endpoint.title, endpoint.price_units) == ("Image by Qwen-Image", 30_000)
    assert endpoint.cost_micros == 4_000
    assert provider.traits.max_concurrency == 1
    assert not provider.is_openai


def test_the_workflow_of_the_page_is_sold():
    texts = {number: {"text": "a text"} for number in ("6", "17")}
    seeds = {number: {"noise_seed": 1} for number in ("10", "14")}
    inputs = {"5": {"width": 8, "height": 8}, "13": {"filename_prefix": "a"}} | texts | seeds
    graph = {number: {"class_type": "Any", "inputs": one} for number, one in inputs.items()}
    workflow = parse_workflow("portrait", WORKFLOW, graph)
    endpoint = workflow.endpoint()
    assert (endpoint.price_units, endpoint.price_steps[0].price_units) == (30_000, 50_000)
    assert (endpoint.cost_micros, endpoint.resolution.values) == (4_000, ("1K", "2K"))
    # The size that the page names.
    request = GenerationRequest(aspect_ratio="16:9", resolution="1K")
    assert workflow.size_of(request) == (1360, 768)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_of_the_page_puts_pictures_on_sale_and_no_edits(address):
    ((endpoint, _),) = sold(Settings(plugin_values={"openai_base_url": address}))
    assert endpoint.slug == "openai-image"
    assert base_url(address, name="openai_base_url") == address


def test_each_server_has_an_address_and_each_setting_exists():
    assert len(ADDRESSES) == 4
    known = {field.name for field in attrs.fields(OpenAISettings)}
    assert {name.lower() for name in NAMED} <= known
    assert {"base_url", "image_model", "api_key", "edit_model", "image_quality"} <= {
        name.lower() for name in NAMED
    }
