"""A shop to race in."""

import pytest

from tests.proof.races.shop import open_shop


@pytest.fixture
async def shop(tmp_path):
    async with open_shop(tmp_path / "data") as opened:
        yield opened
