"""Nodes are replaced one by one by those of the next release, and put back, while buyers buy."""

import random
import time
from pathlib import Path

import attrs

from tests.postgres_server import PostgresServer
from tests.proof.chaos.campaign import Trade
from tests.proof.chaos.nodes import prepared
from tests.proof.chaos.releases import Release
from tests.proof.chaos.verdict import ChaosVerdict, judge_cluster
from tests.proof.process.gateway_process import until

_VERSIONS = """SELECT count(DISTINCT version) AS n FROM nodes
               WHERE seen_at > extract(epoch FROM clock_timestamp()) - 10"""


@attrs.frozen
class UpgradeVerdict:
    """The verdict on the money and the nodes; and what must not happen where nothing breaks."""

    chaos: ChaosVerdict
    faults: list[str]  # a standstill, answers with 500, errors in the log

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong, in sentences."""
        return [*self.faults, *self.chaos.problems]


@attrs.define(kw_only=True)
class Upgrade(Trade):
    """From one release to the next, one node at a time."""

    before: Release
    after: Release
    trade_s: float  # between two changes

    def run(self, *, way_back: bool) -> None:
        """Replace all nodes, and perhaps put them back.

        Raises `AssertionError` where a node does not come up, or nothing is sold any more.
        """
        self.start_clients()
        self._trade()
        self._replace_all(self.after)
        if way_back:
            self._replace_all(self.before)

    def _replace_all(self, release: Release) -> None:
        for number, node in enumerate(self.cluster.nodes):
            self.cluster.replace(node, release)
            self.done["nodes replaced"] += 1
            if number == 0:
                # One of the release before dies, and starts on the schema that there is now.
                self._kill(self.cluster.nodes[-1])
            self._trade()

    def _kill(self, node) -> None:
        self.cluster.kill(node, again=True)
        self.done["nodes killed"] += 1
        until(node._is_up, patience_s=30)
        until(lambda: self.cluster.rows(_VERSIONS)[0]["n"] == 2, patience_s=20)

    def _trade(self) -> None:
        """Let all be bought that is bought in some seconds, and at least something."""
        heard = len(self.memory.heard)
        time.sleep(self.trade_s)
        until(lambda: "200" in self.memory.heard[heard:], patience_s=30)


def run_upgrade(
    folder: Path,
    server: PostgresServer,
    releases: tuple[Release, Release],
    *,
    seed: int,
    nodes: int = 3,
    trade_s: float = 5.0,
    way_back: bool = True,
) -> tuple[UpgradeVerdict, Upgrade]:
    """Do it all; returns what became of everybody's money, and how it went."""
    before, after = releases
    with prepared(folder, server, count=nodes, seed=seed, release=before) as cluster:
        cluster.start()
        upgrade = Upgrade(cluster, random.Random(seed), before=before, after=after, trade_s=trade_s)
        stood_still = []
        try:
            upgrade.run(way_back=way_back)
        except AssertionError as error:
            stood_still = [f"the upgrade stood still: {str(error)[-300:]}"]
        else:
            upgrade.close()
        failed = upgrade.memory.tally()["500"]
        answers = [f"{failed} answers were 500"] if failed else []
        logged = [fault for node in cluster.nodes for fault in node.faults()]
        chaos = judge_cluster(cluster, upgrade.memory)
        return UpgradeVerdict(chaos, [*stood_still, *answers, *logged]), upgrade
