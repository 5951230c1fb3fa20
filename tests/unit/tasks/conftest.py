"""Fixtures: a shop with two workers."""

import pytest

from tests.unit.tasks.engine_shop import JobApi, opened


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
