"""Little patience with a facilitator's answer."""

import pytest


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr("gateway_facilitator_settler.settler._ANSWER_S", 0.3)
