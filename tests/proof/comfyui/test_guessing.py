"""The guess finds the buyer's prompt behind nodes that take both prompts."""

import pytest

from gateway_comfyui.guessing import guess

TEXT = {"input": {"required": {"text": ["STRING", {"multiline": True}]}}, "python_module": "nodes"}
KINDS = {
    "CLIPTextEncode": TEXT,
    "PrimitiveStringMultiline": {"input": {"required": {"value": ["STRING", {"multiline": True}]}}},
    "SaveImage": {"output_node": True, "input": {}},
}


def node(kind, **inputs):
    return {"class_type": kind, "inputs": inputs}


def graph(positive, negative, **more):
    return {
        "7": node("CLIPTextEncode", text="ugly"),
        "3": node("KSampler", seed=5, positive=positive, negative=negative),
        "9": node("SaveImage", images=["3", 0], filename_prefix="x"),
        **more,
    }


VALUE = {
    "6": node("CLIPTextEncode", text=["20", 0]),
    "20": node("PrimitiveStringMultiline", value="a cat"),
}
GUIDED = {
    "6": node("CLIPTextEncode", text="a cat"),
    "11": node("FluxGuidance", conditioning=["6", 0]),
}


@pytest.mark.parametrize("kind", ["ControlNetApplyAdvanced", "WanImageToVideo"])
@pytest.mark.parametrize(
    ("texts", "last", "place"), [(VALUE, "6", "20.value"), (GUIDED, "11", "6.text")]
)
def test_a_prompt_further_away_than_the_negative_one_is_found(kind, texts, last, place):
    both = node(kind, positive=[last, 0], negative=["7", 0])
    found = guess(graph(["10", 0], ["10", 1], **texts, **{"10": both}), KINDS)
    assert found.inputs["prompt"] == [place]
    assert found.warnings == []


def test_a_prompt_that_is_also_the_negative_one_is_named():
    found = guess(graph(["7", 0], ["7", 0]), KINDS)
    assert found.warnings == ["The prompt at 7.text is also the negative one: check [inputs]."]


def test_a_negative_prompt_of_zeros_is_none():
    zeros = {"8": node("ConditioningZeroOut", conditioning=["7", 0])}
    assert guess(graph(["7", 0], ["8", 0], **zeros), KINDS).warnings == []
