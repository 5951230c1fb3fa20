"""No endpoint of a vendor is sold below its cost, at any of its prices."""

import datetime as dt

import pytest

import gateway_bfl.models
import gateway_fal.models
import gateway_gemini.models
import gateway_kie.models
import gateway_openrouter.models
import gateway_replicate.models
from gateway import Settings
from gateway.domain.costs import worst_sales
from gateway.vendors import picture_endpoint
from gateway_llamaparse.settings import TIERS
from gateway_openai.settings import OpenAISettings, model_on_sale
from tests.bundled_endpoints import bundled_endpoints

# They run on the operator's own machine.
LOCAL = {"document-parser", "sandbox-image", "sandbox-image-edit", "sandbox-extract", "docling"}
ENDPOINTS = bundled_endpoints()
TABLES = (
    gateway_bfl.models,
    gateway_fal.models,
    gateway_gemini.models,
    gateway_kie.models,
    gateway_openrouter.models,
    gateway_replicate.models,
)
MODELS = {model.slug: model for table in TABLES for model in table.MODELS}


@pytest.mark.parametrize("slug", sorted(ENDPOINTS.keys() - LOCAL))
def test_every_price_is_a_fifth_above_the_cost_of_its_worst_request(slug):
    sales = list(worst_sales(ENDPOINTS[slug]))
    assert sales
    assert [str(sale) for sale in sales if not sale.is_enough] == []
    dt.date.fromisoformat(ENDPOINTS[slug].cost_checked)


@pytest.mark.parametrize("slug", MODELS)
def test_every_row_and_every_larger_resolution_names_its_cost(slug):
    model = MODELS[slug]
    assert model.cost_micros
    assert set(model.prices) == set(model.costs)
    endpoint = picture_endpoint(model, provider="x")
    assert [str(sale) for sale in worst_sales(endpoint) if not sale.is_enough] == []


@pytest.mark.parametrize("quality", ["low", "medium", "high", "auto"])
def test_every_quality_of_openai_is_sold_above_its_cost(quality):
    model = model_on_sale(OpenAISettings(image_quality=quality), Settings())
    (sale,) = worst_sales(picture_endpoint(model, provider="openai"))
    assert sale.is_enough


def test_another_model_or_server_has_no_cost_that_would_be_made_up():
    other = OpenAISettings(image_model="gpt-image-9")
    own = OpenAISettings(base_url="http://127.0.0.1:8000/v1")
    assert [model_on_sale(one, Settings()).cost_micros for one in (other, own)] == [None, None]


def test_every_tier_names_what_a_page_costs():
    assert all(tier.page_cost_micros for tier in TIERS.values())
