"""A gateway with 1 GB sells pictures, scans and big spreadsheets at once, and loses no process."""

import pytest

from tests.conftest import one_server
from tests.proof.process import memory_soak


@pytest.mark.full
@one_server
def test_nothing_is_killed_for_memory_and_everything_is_sold(tmp_path, chain, key, http_server):
    if problem := memory_soak.find_problem():
        pytest.skip(f"no control group can be made: {problem}")
    with memory_soak.limited(2**30) as group:
        soak = memory_soak.run(tmp_path, chain, key, 2, group, GATEWAY_SERVER=http_server)
        assert group.kills() == 0
    assert soak.ends == {
        "document-parser completed": 4,
        "sandbox-image completed": 2,
        "sandbox-image-edit completed": 2,
    }
    assert not soak.gateway.events("machine.short")
    assert soak.waited
