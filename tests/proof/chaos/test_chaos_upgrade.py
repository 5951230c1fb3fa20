"""Nodes are upgraded one at a time while buyers buy; `make chaos-upgrade` runs longer."""

import pytest

from tests.proof.chaos.releases import NEXT, PRESENT
from tests.proof.chaos.upgrade import run_upgrade


@pytest.mark.full  # `make chaos-upgrade`; test_way_back.py puts a release on one machine's database
def test_money_survives_an_upgrade_node_by_node(postgres_server, tmp_path):
    verdict, upgrade = run_upgrade(
        tmp_path, postgres_server, (PRESENT, NEXT), seed=1, nodes=2, trade_s=0.5, way_back=False
    )
    assert verdict.problems == []
    assert upgrade.done["nodes replaced"] == 2
    assert upgrade.done["sales of the added endpoint"]
    assert verdict.chaos.money.payments["settled"] > 5
