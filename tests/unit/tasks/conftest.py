"""Fixtures: a shop with two lanes, and pauses short enough for tests."""

import pytest

from gateway.sandbox import Sandbox, pictures_child
from tests.unit.tasks.engine_shop import JobApi, opened


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("gateway.tasks.polling._PAUSES_S", (0.01, 0.02))
    monkeypatch.setattr("gateway.tasks.polling._ASKED_S", (0.001, 60.0))
    monkeypatch.setattr("gateway.tasks.delivery._FETCH_PAUSES_S", (0.01, 0.01))
    monkeypatch.setattr("gateway.tasks.resources._KEEP_PAUSES_S", (0.01, 0.01, 0.01))
    monkeypatch.setattr("gateway.tasks.pool._LOOK_S", 0.02)


@pytest.fixture(autouse=True)
def _pictures_are_decoded_here(monkeypatch):
    """Look at pictures as the sandbox's child does, without starting one."""

    async def check(sandbox, wanted, data):
        return pictures_child.check(wanted, data.encode() if isinstance(data, str) else data)

    monkeypatch.setattr(Sandbox, "call_parts", check)


@pytest.fixture
async def shop(tmp_path, provider, clock):
    async with opened(tmp_path, provider, clock, start=False) as shop:
        yield shop


@pytest.fixture
def api():
    return JobApi()


@pytest.fixture
async def jobs(tmp_path, api, clock):
    """A shop whose provider makes jobs."""
    async with opened(tmp_path, api, clock, timeout_s=300) as shop:
        yield shop
