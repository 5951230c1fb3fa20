"""The offers of gateway_speech pass the applicable scenes of the kit."""

import pytest

import gateway_speech
from gateway.testing import ProviderContract
from tests import hidden_models

pytestmark = pytest.mark.skipif(
    bool(hidden_models.REAL[gateway_speech]()), reason="the models are missing: run `make models`"
)


@pytest.fixture(autouse=True)
def _shown(monkeypatch):
    hidden_models.show(monkeypatch)


class TestTextToSpeech(ProviderContract):
    plugin = gateway_speech
    api = None


class TestSpeechToText(ProviderContract):
    plugin = gateway_speech
    api = None
    slug = gateway_speech.TRANSCRIBE.slug


class TestSpeechCleanup(ProviderContract):
    plugin = gateway_speech
    api = None
    slug = gateway_speech.CLEAN.slug
