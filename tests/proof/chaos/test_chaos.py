"""Several nodes on one PostgreSQL, killed and cut off: no money is lost or taken twice."""

import pytest

from tests.proof.chaos.campaign import Plan, run_chaos

# A few seconds of everything; `make chaos` runs for minutes.
_SHORT = Plan(
    seconds=5,
    kill_every=(1, 2),
    cut_every=2,
    lose_every=1,
    crash_every=2.5,
    pause_every=3,
    pause=1,
)


@pytest.mark.full
def test_money_survives_the_nodes_and_their_database(postgres_server, tmp_path):
    verdict, campaign = run_chaos(tmp_path, postgres_server, _SHORT, seed=20261123, nodes=2, keys=3)
    assert verdict.problems == []
    assert campaign.done["nodes killed"]
    assert campaign.done["crashes of PostgreSQL"]
    assert campaign.done["responses of COMMIT lost"]
    assert verdict.money.payments["settled"] > 5
