"""Patience for a machine that does much else, and databases that are there already."""

import attrs
import pytest

import gateway_sandbox_image
from gateway_sandbox_image import renderer
from tests.migrated_databases import put_database

_PATIENCE_S = 1800.0


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """The painter lets every other process go first, so on a busy machine it takes minutes."""
    draw = renderer.draw
    for name in ("ENDPOINT", "EDIT"):
        slow = attrs.evolve(getattr(gateway_sandbox_image, name), timeout_s=_PATIENCE_S)
        monkeypatch.setattr(gateway_sandbox_image, name, slow)
    monkeypatch.setattr("gateway.testing.provider.gateway_under_test.PATIENCE_S", _PATIENCE_S)
    monkeypatch.setattr(
        renderer, "draw", lambda *order, timeout_s: draw(*order, timeout_s=_PATIENCE_S)
    )


@pytest.fixture(autouse=True)
def _migrated(tmp_path):
    """Give each gateway a database that needs no migration."""
    put_database(tmp_path / "gateway.db")
