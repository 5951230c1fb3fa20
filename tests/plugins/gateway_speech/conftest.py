"""Skips the tests of real models if they are not installed."""

import pytest

import gateway_speech
from tests import hidden_models

REASON = hidden_models.REAL[gateway_speech]()
HERE = __file__.removesuffix("conftest.py")


def pytest_collection_modifyitems(items):
    mark = pytest.mark.skip(reason=f"the models are missing: run `make models` ({REASON})")
    for item in items:
        if REASON and str(item.path).startswith(f"{HERE}app"):
            item.add_marker(mark)


@pytest.fixture(autouse=True)
def _shown(monkeypatch):
    hidden_models.show(monkeypatch)
