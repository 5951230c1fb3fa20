"""A gateway that a test stops, and its vendor."""

from collections.abc import Iterator

import pytest

from tests.proof.standstills.stopped_gateway import StoppedGateway


@pytest.fixture
def stopped(tmp_path, chain, key) -> Iterator[StoppedGateway]:
    """A running gateway that has warmed up."""
    gateway = StoppedGateway(tmp_path, chain, key)
    gateway.start()
    yield gateway
    gateway.kill()
