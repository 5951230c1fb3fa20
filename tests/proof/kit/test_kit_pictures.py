"""The offers of gateway_pictures pass the applicable scenes of the kit."""

import pytest

import gateway_pictures
from gateway.testing import ProviderContract
from tests import hidden_models
from tests.plugins.gateway_pictures.drawn import file_of, subject

pytestmark = pytest.mark.skipif(
    bool(hidden_models.REAL[gateway_pictures]()), reason="the models are missing: run `make models`"
)


@pytest.fixture(autouse=True)
def _shown(monkeypatch):
    hidden_models.show(monkeypatch)


PHOTO = "photo.png", file_of(subject(96)[0])


class TestBackgroundRemoval(ProviderContract):
    plugin = gateway_pictures
    api = None
    prompt = "white"
    file = PHOTO


class TestImageUpscaling(ProviderContract):
    plugin = gateway_pictures
    api = None
    slug = gateway_pictures.ENLARGE.slug
    file = PHOTO


class TestImageRepair(ProviderContract):
    plugin = gateway_pictures
    api = None
    slug = gateway_pictures.REPAIR.slug
    file = PHOTO
