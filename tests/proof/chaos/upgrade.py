"""Replaces nodes one by one with the next release, and rolls them back, while buyers buy."""

import random
import time
from pathlib import Path

import attrs

from tests.postgres_server import PostgresServer
from tests.proof.chaos.campaign import Trade
from tests.proof.chaos.nodes import prepared
from tests.proof.chaos.releases import Release
from tests.proof.chaos.verdict import ChaosVerdict, judge_cluster
from tests.proof.crashes.clients import NewerBuyer
from tests.proof.process.gateway_process import until

# Tasks of the endpoint that only the next release has.
_NEWER = "SELECT count(*) AS n FROM tasks WHERE slug = 'newer' AND status IN ({})"
_UNFINISHED = _NEWER.format("'held', 'queued', 'processing'")
_VERSIONS = """SELECT count(DISTINCT version) AS n FROM nodes
               WHERE seen_at > extract(epoch FROM clock_timestamp()) - 10"""


@attrs.frozen
class UpgradeVerdict:
    """The verdict on money and nodes, and on errors that an upgrade must not cause."""

    chaos: ChaosVerdict
    faults: list[str]  # a standstill, answers with 500, errors in the log

    @property
    def problems(self) -> list[str]:
        """All problems, in sentences."""
        return [*self.faults, *self.chaos.problems]


@attrs.define(kw_only=True)
class Upgrade(Trade):
    """An upgrade from one release to the next, one node at a time."""

    before: Release
    after: Release
    trade_s: float  # between two changes
    newer: NewerBuyer | None = None

    def run(self, *, way_back: bool) -> None:
        """Replace all nodes, and roll them back with `way_back`.

        Raises `AssertionError` if a node does not come up, or if sales stop.
        """
        self.start_clients()
        self._trade()
        self._replace_all(self.after)
        if way_back:
            self._replace_all(self.before)

    def _replace_all(self, release: Release) -> None:
        for number, node in enumerate(self.cluster.nodes):
            if release is self.before and node is self.cluster.nodes[-1]:
                self._stop_newer()
            self.cluster.replace(node, release)
            self.done["nodes replaced"] += 1
            if release is self.after and number == 0:
                self._start_newer()
            if number == 0:
                # A node of the release before dies, and starts on the new schema.
                self._kill(self.cluster.nodes[-1])
            self._trade()

    def _start_newer(self) -> None:
        """Buy from the endpoint that only some nodes have."""
        seed = self.chance.getrandbits(32)
        self.newer = NewerBuyer(self.cluster, self.cluster.chain, self.memory, seed)
        self.clients.append(self.newer)
        self.newer.start()

    def _stop_newer(self) -> None:
        """Let the last node that has the endpoint end its tasks."""
        if self.newer is not None:
            self.newer.stopping.set()
            self.newer.join(120)
        until(lambda: not self.cluster.rows(_UNFINISHED)[0]["n"], patience_s=60)

    def _kill(self, node) -> None:
        self.cluster.kill(node, again=True)
        self.done["nodes killed"] += 1
        until(node._is_up, patience_s=30)
        until(lambda: self.cluster.rows(_VERSIONS)[0]["n"] == 2, patience_s=20)

    def _trade(self) -> None:
        """Sell for some seconds; fail if nothing was sold."""
        answered = len(self.memory.answers)
        time.sleep(self.trade_s)
        until(lambda: "200" in self.memory.answers[answered:], patience_s=30)


def run_upgrade(
    folder: Path,
    server: PostgresServer,
    releases: tuple[Release, Release],
    *,
    seed: int,
    nodes: int = 3,
    keys: int = 1,
    trade_s: float = 5.0,
    way_back: bool = True,
) -> tuple[UpgradeVerdict, Upgrade]:
    """Run the upgrade; returns the verdict and the upgrade."""
    before, after = releases
    with prepared(folder, server, count=nodes, seed=seed, keys=keys, release=before) as cluster:
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
        sold = cluster.rows(_NEWER.format("'completed'"))[0]["n"]
        upgrade.done["sales of the added endpoint"] = sold
        refused = cluster.rows(_NEWER.format("'failed'"))[0]["n"]
        answers += [f"{refused} tasks of the added endpoint failed"] if refused else []
        logged = [fault for node in cluster.nodes for fault in node.faults()]
        chaos = judge_cluster(cluster, upgrade.memory)
        return UpgradeVerdict(chaos, [*stood_still, *answers, *logged]), upgrade
