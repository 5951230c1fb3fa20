"""Several nodes on one PostgreSQL, killed and cut off: no money is lost, and none taken twice."""

from tests.proof.chaos.campaign import Plan, run_chaos

# Some seconds of everything; `make chaos` goes on for minutes.
_SHORT = Plan(seconds=9, kill_every=(1.5, 3), cut_every=3, crash_every=4, pause_every=6, pause=2)


def test_money_survives_the_nodes_and_their_database(postgres_server, tmp_path):
    verdict, campaign = run_chaos(tmp_path, postgres_server, _SHORT, seed=20261123, nodes=3)
    assert verdict.problems == []
    assert campaign.done["nodes killed"]
    assert campaign.done["crashes of PostgreSQL"]
    assert verdict.money.payments["settled"] > 5
