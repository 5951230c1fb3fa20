"""Fixtures of adapters' tests."""

import pytest


@pytest.fixture
async def seller(api):
    """The endpoint of the file's fake vendor."""
    found = api.seller()
    yield found
    await found.provider.close()
