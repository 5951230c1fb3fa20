"""Load, SIGKILL, restart on the same data, again and again; then all work may finish."""

import contextlib
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs
from eth_account import Account

from tests.proof.crashes.clients import Client, DirectBuyer, Memory, Miner, Observer, X402Buyer
from tests.proof.crashes.remote_chain import RemoteChain, chain_process
from tests.proof.crashes.verdict import Verdict, compare
from tests.proof.process.gateway_process import Gateway, until

_CLIENTS = (*[X402Buyer] * 6, *[DirectBuyer] * 4, Observer, Observer, Miner)
# Until a buyer has his answer, and without one task or payment more that has ended.
_CLOSE_S = 700
_EARLY_SHARE = 0.3  # of the kills: some time after the start, wherever that is
_LEFT = """SELECT 'payments ' || state, count(*) FROM payments
           WHERE state IN ('reserved', 'settling') GROUP BY state
           UNION ALL SELECT 'tasks ' || status, count(*) FROM tasks
           WHERE status IN ('held', 'queued', 'processing') GROUP BY status"""


@attrs.define
class Run:
    """One gateway, one chain, some clients, and the random generator."""

    gateway: Gateway
    chain: RemoteChain
    chance: random.Random
    memory: Memory = attrs.field(factory=Memory)
    clients: list[Client] = attrs.field(factory=list)
    found: Counter = attrs.field(factory=Counter)  # what was open when the gateway was back

    def batches(self) -> int:
        """Return how many transactions settled several payments."""
        return self._rows("SELECT count(DISTINCT tx_hash) FROM sent_payments")[0][0]

    def crash(self, cycles: int, tell) -> None:
        """Kill the loaded gateway `cycles` times."""
        self._open_for_the_first_time()
        self._start_clients()
        for cycle in range(cycles):
            if cycle:
                self._restart()
            self._wait_for_the_moment()
            self.gateway.kill()
            tell(cycle + 1)

    def _open_for_the_first_time(self) -> None:
        """Start; payments within the second of the database's creation are refused by design."""
        self.gateway.start()
        born_by = time.time()
        until(lambda: self.chain.timestamp() > born_by)

    def _restart(self) -> None:
        self.gateway.start()
        self.found.update(dict(self._rows(_LEFT)))

    def _start_clients(self) -> None:
        for kind in _CLIENTS:
            client = kind(self.gateway, self.chain, self.memory, self.chance.getrandbits(32))
            self.clients.append(client)
        self.chain.result("evm_setAutomine", False)
        for client in self.clients:
            client.start()

    def _wait_for_the_moment(self) -> None:
        """Wait a random time, or until some more purchases were answered."""
        if self.chance.random() < _EARLY_SHARE:
            time.sleep(self.chance.uniform(0.05, 0.6))
            return
        target = self.memory.answers.count("200") + self.chance.randrange(1, 30)
        until(lambda: self.memory.answers.count("200") >= target, patience_s=120)
        time.sleep(self.chance.uniform(0, 0.1))

    def close(self) -> None:
        """Let the clients finish what they began, then stop the gateway."""
        self._restart()
        self.chain.result("evm_setAutomine", True)
        for client in self.clients:
            client.stopping.set()
        for client in self.clients:
            client.join(_CLOSE_S)
            if client.problem is not None or client.is_alive():
                raise RuntimeError(f"{type(client).__name__} did not end well") from client.problem
        self._drain()
        self.gateway.stop()
        if self.gateway.process.wait(timeout=120) != 0:
            raise RuntimeError(f"the gateway did not end well; see {self.gateway.log}")

    def _drain(self) -> None:
        """Wait while open work becomes less; what is left over is the verdict's to tell."""
        with contextlib.suppress(AssertionError):
            while left := self._left():
                until(partial(self._is_below, left), patience_s=_CLOSE_S)

    def _is_below(self, left: int) -> bool:
        return self._left() < left

    def _left(self) -> int:
        return sum(count for _, count in self._rows(_LEFT))

    def _rows(self, sql: str) -> list[tuple]:
        path = self.gateway.folder / "data" / "gateway.db"
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return db.execute(sql).fetchall()


@contextlib.contextmanager
def prepared(folder: Path, seed: int, batch: int) -> Iterator[Run]:
    """Start a chain and a gateway in a folder, and stop them at the end.

    `batch` is the maximum of payments in one transaction.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with chain_process(folder) as chain:
        account = Account.create()
        chain.fund(account.address, eth_wei=10**21, usdc_units=0)
        patience = {
            "GATEWAY_WORKERS": "4",
            "GATEWAY_TX_PATIENCE": "1",
            "GATEWAY_SETTLEMENT_BATCH": str(batch),
        }
        limits = {f"GATEWAY_LIMIT_{name}": "1000000/1s" for name in ("X402", "DIRECT", "TASK")}
        gateway = Gateway(folder, chain, account.key.hex(), **patience, **limits)
        gateway.let_go()
        try:
            yield Run(gateway, chain, random.Random(seed))
        finally:
            if gateway.process is not None and gateway.process.poll() is None:
                gateway.kill()


def crash_and_compare(
    folder: Path, *, cycles: int, seed: int, batch: int = 1, tell=lambda cycle: None
) -> tuple[Verdict, Run]:
    """Run it; returns the verdict and the run."""
    with prepared(folder, seed, batch) as run:
        run.crash(cycles, tell)
        run.close()
        return compare(folder, run.chain, run.memory), run
