"""The cost of a generation follows from the tokens in its response, or is unknown."""

import pytest

from gateway_gemini.usage import cost_micros as gemini_cost
from gateway_openai.usage import cost_micros as openai_cost

# The shapes are those of openai 3.54.0 and google-genai 3.4.0.
FLARE, BANANA = "gpt-image-2.5-flare", "gemini-nano-banana-2.1"
OPENAI = {
    "input_tokens": 1_550,
    "input_tokens_details": {"image_tokens": 1_536, "text_tokens": 14},
    "output_tokens": 439,
    "output_tokens_details": {"image_tokens": 439, "text_tokens": 0},
}
GEMINI = {
    "promptTokenCount": 10,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}],
    "candidatesTokenCount": 1_130,
    "candidatesTokensDetails": [
        {"modality": "IMAGE", "tokenCount": 1_120},
        {"modality": "TEXT", "tokenCount": 10},
    ],
    "thoughtsTokenCount": 200,
    "totalTokenCount": 1_340,
}
SENT = [{"modality": "TEXT", "tokenCount": 4}, {"modality": "IMAGE", "tokenCount": 6}]


def test_openai_bills_text_a_sent_picture_and_the_made_one():
    cost = openai_cost(FLARE, {"usage": OPENAI})
    assert cost == 5 * 14 + 8 * 1_536 + 30 * 439


@pytest.mark.parametrize(
    "change",
    [
        {"input_tokens": 1_551},
        {"output_tokens": 440},
        {"input_tokens_details": None},
        {"output_tokens_details": None},
        {"output_tokens_details": {"image_tokens": "439"}},
        {"output_tokens_details": {"image_tokens": True}, "output_tokens": True},
        {"output_tokens_details": {"image_tokens": 10**12}, "output_tokens": 10**12},
        {"output_tokens_details": {"image_tokens": 0}, "output_tokens": 0},
    ],
)
def test_openai_tokens_that_nobody_can_price_are_no_cost(change):
    assert openai_cost(FLARE, {"usage": OPENAI | change}) is None


@pytest.mark.parametrize("body", [None, [], {}, {"usage": None}, {"usage": [1]}])
def test_openai_without_usage_names_no_cost(body):
    assert openai_cost(FLARE, body) is None


def test_gemini_bills_text_thoughts_and_the_picture():
    assert gemini_cost(BANANA, GEMINI) == 15 + 30 * 1_120 + round(7.5 * 210)


def test_gemini_without_thoughts():
    usage = {name: value for name, value in GEMINI.items() if name != "thoughtsTokenCount"}
    assert gemini_cost(BANANA, usage | {"totalTokenCount": 1_140}) == 15 + 33_600 + 75


@pytest.mark.parametrize(
    "change",
    [
        {"promptTokensDetails": SENT},
        {"promptTokenCount": 11},
        {"candidatesTokenCount": 1_131},
        {"candidatesTokensDetails": None},
        {"totalTokenCount": 1_400},
        {"thoughtsTokenCount": "200"},
        {"candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 1_130}]},
        {"candidatesTokensDetails": [{"modality": ["IMAGE"], "tokenCount": 1_130}]},
    ],
)
def test_gemini_tokens_that_nobody_can_price_are_no_cost(change):
    assert gemini_cost(BANANA, GEMINI | change) is None


def test_a_model_without_known_prices_has_no_cost():
    assert openai_cost("gpt-image-9", {"usage": OPENAI}) is None
    assert gemini_cost("gemini-3-pro-image", GEMINI) is None
    assert gemini_cost(BANANA, None) is None
