"""A desk of alarms."""

import pytest

from tests.plugins.gateway_operator.unit.alarm_desk import alarm_desk


@pytest.fixture
async def desk(tmp_path):
    async with alarm_desk(tmp_path) as made:
        yield made
