"""A gateway in a process of its own, for each HTTP server."""

import pytest

from tests.proof.process.gateway_process import Gateway


@pytest.fixture
def served(tmp_path, chain, key, http_server):
    gateway = Gateway(tmp_path, chain, key, GATEWAY_SERVER=http_server)
    yield gateway
    if gateway.process is not None:
        gateway.kill()
