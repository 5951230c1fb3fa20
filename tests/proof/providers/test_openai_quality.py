"""The cost of OpenAI's quality decides its price, and a model gets no quality that it refuses.

Evidence, nothing of it seen live: openai 3.54.0 (PyPI, 2026-11-22) documents `xhigh` and `max` for
gpt-image-2.5 and later; OpenAI's price examples of gpt-image-2 as quoted by other companies
(2026-05): a square costs 0.006, 0.053 and 0.211 US dollars from low to high. Those of 2.5 Flare are
tokens measured by others (2026-09) at 30 US dollars a million.
"""

import pytest
from vendor_site import on_sale

import gateway_openai
from gateway import Settings, SettingsError
from gateway.settings import EndpointOverride

COST_MICROS = {
    ("gpt-image-2", "low"): 6_000,
    ("gpt-image-2", "medium"): 53_000,
    ("gpt-image-2", "high"): 211_000,
    ("gpt-image-2", "auto"): 211_000,
    ("gpt-image-2.5-flare", "low"): 5_880,
    ("gpt-image-2.5-flare", "medium"): 13_170,
    ("gpt-image-2.5-flare", "high"): 52_680,
    ("gpt-image-2.5-flare", "xhigh"): 93_660,
    ("gpt-image-2.5-flare", "max"): 210_720,
    ("gpt-image-2.5-flare", "auto"): 210_720,
}
# The growth factors of larger pictures in gateway_openai.sizes.
GROWTH = {"1K": 1.0, "2K": 2.0, "4K": 2.6}


def sold(**values):
    """Return the offers for new pictures with OpenAI's key; edits have their own tests."""
    endpoint, _ = on_sale(gateway_openai, openai_api_key="sk", **values)["openai-image"]
    return endpoint


@pytest.mark.parametrize(("model", "quality"), COST_MICROS)
def test_a_picture_of_any_quality_and_size_is_sold_for_more_than_it_costs(model, quality):
    every = ("1K", "2K", "4K")
    values = {"openai_image_model": model, "openai_image_quality": quality}
    endpoint = sold(**values, openai_image_resolutions=every)
    prices = {"1K": endpoint.price_units}
    prices |= {step.resolution: step.price_units for step in endpoint.price_steps}
    for resolution, growth in GROWTH.items():
        assert prices[resolution] >= 1.2 * COST_MICROS[model, quality] * growth


def test_another_server_has_one_price_because_it_is_sent_no_quality():
    values = {"openai_base_url": "http://127.0.0.1:8000/v1", "openai_image_quality": "high"}
    assert sold(**values).price_units == 80_000


def test_a_quality_of_unknown_cost_needs_a_price():
    values = {"openai_image_quality": "max", "openai_image_model": "gpt-image-2.6-flare"}
    with pytest.raises(SettingsError, match="GATEWAY_OPENAI_IMAGE_PRICE is missing"):
        sold(**values)
    assert sold(**values, openai_image_price="0.6").price_units == 600_000


@pytest.mark.parametrize("quality", ["xhigh", "max"])
@pytest.mark.parametrize("model", ["gpt-image-1", "gpt-image-1.5", "gpt-image-2", "gpt-image-2-4k"])
def test_a_quality_that_the_model_refuses_stops_the_start(model, quality):
    values = {"openai_image_quality": quality, "openai_image_price": "0.6"}
    with pytest.raises(SettingsError, match=f"{model} does not take {quality}"):
        sold(**values, openai_image_model=model)


@pytest.mark.parametrize("model", ["gpt-image-2.5-flare", "gpt-image-2.6", "gpt-image-3"])
def test_a_newer_model_is_asked_for_them(model):
    values = {"openai_image_quality": "xhigh", "openai_image_price": "0.6"}
    assert sold(**values, openai_image_model=model).model == model


def test_the_model_of_the_endpoints_table_is_the_one_that_counts():
    settings = Settings(
        plugin_values={
            "openai_api_key": "sk",
            "openai_image_quality": "max",
            "openai_image_price": "0.6",
            "openai_image_model": "gpt-image-2.5-flare",
        },
        endpoints={"openai-image": EndpointOverride(model="gpt-image-2")},
    )
    with pytest.raises(SettingsError, match="gpt-image-2 does not take max"):
        gateway_openai.register_endpoints(lambda *_: None, settings)


# -- when a model retires


@pytest.mark.parametrize(
    ("model", "day"),
    [
        ("gpt-image-1.5", "2026-12-01"),
        ("gpt-image-1-mini", "2026-12-01"),
        ("chatgpt-image-latest", "2026-12-01"),
        ("gpt-image-2", None),
    ],
)
def test_a_model_that_openai_switches_off_retires_on_that_day(model, day):
    named = sold(openai_image_model=model)
    edits, _ = on_sale(gateway_openai, openai_api_key="sk", openai_edit_model=model)[
        "openai-image-edit"
    ]
    tabled = {}
    settings = Settings(
        plugin_values={"openai_api_key": "sk"},
        endpoints={"openai-image": EndpointOverride(model=model)},
    )
    gateway_openai.register_endpoints(lambda one, _: tabled.update({one.slug: one}), settings)
    assert [one.retires for one in (named, edits, tabled["openai-image"])] == [day] * 3


def test_another_servers_model_of_that_name_stays():
    elsewhere = {"openai_base_url": "http://127.0.0.1:8000/v1"}
    assert sold(**elsewhere, openai_image_model="gpt-image-1.5").retires is None
