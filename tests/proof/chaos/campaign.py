"""Injects faults into nodes and database while buyers buy, then lets all work finish."""

import contextlib
import random
import time
from collections import Counter
from pathlib import Path

import attrs
import psycopg

from tests.postgres_server import PostgresServer
from tests.proof.chaos.mutants import MUTANTS
from tests.proof.chaos.nodes import Cluster, prepared
from tests.proof.chaos.releases import PRESENT
from tests.proof.chaos.verdict import ChaosVerdict, judge_cluster
from tests.proof.crashes.clients import Client, DirectBuyer, Memory, Miner, Observer, X402Buyer
from tests.proof.process.gateway_process import until

_CLIENTS = (*[X402Buyer] * 4, *[DirectBuyer] * 3, Observer, Miner)
_CLOSE_S = 240  # until everything that was begun has ended
_OPEN = """SELECT count(*) AS n FROM payments p LEFT JOIN tasks t ON t.payment_id = p.id
           WHERE p.state IN ('reserved', 'settling')
               OR t.status IN ('held', 'queued', 'processing')"""
_CUT = """SELECT count(pg_terminate_backend(pid)) AS n FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5"""


@attrs.frozen(kw_only=True)
class Plan:
    """Duration and intervals of the faults, in seconds."""

    seconds: float = 180.0
    kill_every: tuple[float, float] = (1.0, 3.0)
    cut_every: float = 5.0
    lose_every: float = 8.0
    # Longer than the nodes' pools wait.
    outage: tuple[float, float] = (1.5, 4.0)
    crash_every: float = 40.0
    pause_every: float = 60.0
    pause: float = 20.0
    under_same_name: float = 0.3  # of the nodes that were killed


@attrs.define
class Trade:
    """The nodes, the buyers, the random generator, and their acts so far."""

    cluster: Cluster
    chance: random.Random
    memory: Memory = attrs.field(factory=Memory)
    clients: list[Client] = attrs.field(factory=list)
    done: Counter = attrs.field(factory=Counter)

    def start_clients(self) -> None:
        """Start all buyers and the miner."""
        born_by = time.time()
        until(lambda: self.cluster.chain.timestamp() > born_by)
        for kind in _CLIENTS:
            seed = self.chance.getrandbits(32)
            self.clients.append(kind(self.cluster, self.cluster.chain, self.memory, seed))
        self.cluster.chain.result("evm_setAutomine", False)
        for client in self.clients:
            client.start()

    def close(self) -> None:
        """Let the buyers finish their purchases, then stop the nodes."""
        self.cluster.way.losses = 0
        self.cluster.chain.result("evm_setAutomine", True)
        for client in self.clients:
            client.stopping.set()
        give_up_at = time.monotonic() + _CLOSE_S
        while any(client.is_alive() for client in self.clients) and time.monotonic() < give_up_at:
            self.cluster.revive()
            time.sleep(0.5)
        for client in self.clients:
            if client.problem is not None or client.is_alive():
                raise RuntimeError(f"{type(client).__name__} did not end well") from client.problem
        with contextlib.suppress(AssertionError):  # what is left over is the verdict's to tell
            until(lambda: not self.cluster.rows(_OPEN)[0]["n"], patience_s=_CLOSE_S)
        for node in self.cluster.nodes:
            self.done["nodes that ended by themselves"] += node.ended
            self.done["errors logged"] += len(node.faults())


@attrs.define(kw_only=True)
class Campaign(Trade):
    """All the faults of a plan."""

    plan: Plan

    def run(self) -> None:
        """Inject faults until the time is over, then let all work finish."""
        self.start_clients()
        began = time.monotonic()
        every = {
            self._cut: self.plan.cut_every,
            self._lose: self.plan.lose_every,
            self._crash: self.plan.crash_every,
            self._pause: self.plan.pause_every,
        }
        due = {trouble: began + seconds for trouble, seconds in every.items()}
        while time.monotonic() < began + self.plan.seconds:
            time.sleep(self.chance.uniform(*self.plan.kill_every))
            self.cluster.revive()
            self._kill()
            for trouble in [one for one, at in due.items() if time.monotonic() >= at]:
                trouble()
                due[trouble] = time.monotonic() + every[trouble]
        self.close()

    def _kill(self) -> None:
        # A machine restarts under its name, or is lost and another one takes its place.
        again = self.chance.random() < self.plan.under_same_name
        self.cluster.kill(self.chance.choice(self.cluster.nodes), again=again)
        self.done["nodes killed"] += 1
        self.done["nodes that came again under their name"] += again

    def _cut(self) -> None:
        """Terminate half of the sessions, in any transaction."""
        with contextlib.suppress(psycopg.Error):
            (row,) = self.cluster.rows(_CUT)
            self.done["sessions cut"] += row["n"]

    def _lose(self) -> None:
        """Lose the response of the next COMMIT, and the database for a while."""
        way = self.cluster.way
        self.done["responses of COMMIT lost"] += not way.losses
        way.outage_s = self.chance.uniform(*self.plan.outage)
        way.reaches_server = self.chance.random() < 0.8
        way.losses = 1

    def _crash(self) -> None:
        """Stop PostgreSQL without a checkpoint, and start it again."""
        self.cluster.server.crash()
        time.sleep(self.chance.uniform(0.2, 2.0))
        self.cluster.server.restart()
        self.done["crashes of PostgreSQL"] += 1

    def _pause(self) -> None:
        """Pause the leader until another node leads."""
        with contextlib.suppress(AssertionError):  # nobody leads, so anybody is paused
            until(self._leader, patience_s=self.plan.pause)
        name = self._leader()
        living = [node for node in self.cluster.nodes if node.is_alive()]
        leaders = [node for node in living if node.environment["GATEWAY_NODE"] == name]
        if living:
            self.cluster.pause((leaders or living)[0], self.plan.pause)
            self.done["leaders paused" if leaders else "nodes paused"] += 1

    def _leader(self) -> str:
        """Return the leader's name; empty if there is none or no node responds."""
        with contextlib.suppress(psycopg.Error):
            rows = self.cluster.rows(
                "SELECT n.name FROM nodes n JOIN roles r ON r.holder = n.life "
                "WHERE r.name = 'leader' AND r.until > extract(epoch FROM clock_timestamp())"
            )
            return rows[0]["name"] if rows else ""
        return ""


def run_chaos(
    folder: Path,
    server: PostgresServer,
    plan: Plan,
    *,
    seed: int,
    nodes: int = 4,
    keys: int = 1,
    mutant: str | None = None,
) -> tuple[ChaosVerdict, Campaign]:
    """Run the campaign; returns the verdict and the campaign."""
    release = PRESENT if mutant is None else attrs.evolve(PRESENT, patch=MUTANTS[mutant])
    with prepared(folder, server, count=nodes, seed=seed, keys=keys, release=release) as cluster:
        cluster.start()
        campaign = Campaign(cluster, random.Random(seed), plan=plan)
        campaign.run()
        return judge_cluster(cluster, campaign.memory), campaign
