"""The real server killed under load: no money is lost or taken twice.

`make crash` kills it a thousand times.
"""

import pytest

from tests.proof.crashes.cycles import crash_and_compare


def test_after_three_kills_under_load_database_and_chain_agree(tmp_path):
    verdict, run = crash_and_compare(tmp_path, cycles=3, seed=20261121)
    assert verdict.problems == []
    tally = run.memory.tally()
    assert tally["200"]
    assert tally["cut off"], "no kill came while anybody waited"
    assert run.found, "no kill left anything open"
    assert verdict.payments["settled"] > 10


@pytest.mark.full
def test_after_two_kills_of_a_gateway_that_settles_in_batches_they_agree_as_well(tmp_path):
    verdict, run = crash_and_compare(tmp_path, cycles=2, seed=20261123, batch=10)
    assert verdict.problems == []
    assert verdict.payments["settled"] > 10
    assert run.batches(), "nothing was settled in a batch"
