"""Fixtures: a shop with two workers."""

import pytest

from gateway.sandbox import Sandbox, pictures_child
from tests.unit.tasks.engine_shop import JobApi, opened


@pytest.fixture(autouse=True)
def _pictures_are_decoded_here(monkeypatch):
    """Decode pictures as the sandbox's child does, without starting one."""

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
    async with opened(tmp_path, api, clock) as shop:
        yield shop
