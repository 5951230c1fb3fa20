"""A real `gateway serve` that is stopped at a step of a sale, for an hour of its clocks.

SIGSTOP stops the process; what its clocks show after SIGCONT is up to the test:

- `stopped`: both clocks went on, as for a process that was stopped;
- `suspended`: the monotonic clock stood still, as in a suspended machine;
- `lagging`: both stood still, and the wall clock is set right when the test calls `set_clock`.
"""

import contextlib
import mmap
import signal
import sqlite3
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import attrs

from tests.conftest import WALLET, Payer
from tests.proof.process.gateway_process import Gateway, until

# The selector of `transferWithAuthorization` with v, r and s.
_SETTLE = "e3ee160e"
# Its functions keep their imports and state: after `runpy` its globals are gone.
_CLOCKS = """
def shift(path):
    import mmap, struct, time
    import gateway.app
    from gateway.concurrency.standstills import Standstills

    with open(path, "r+b") as opened:
        shared = mmap.mmap(opened.fileno(), 16)
    wall, monotonic, read = time.time, time.monotonic, struct.unpack_from
    time.time = lambda: wall() + read("d", shared, 0)[0]
    time.monotonic = lambda: monotonic() + read("d", shared, 8)[0]
    gateway.app.create_app.__kwdefaults__.update(now=time.time)
    Standstills.__init__.__kwdefaults__.update(wall=time.time, monotonic=time.monotonic)

shift({path!r})
"""


@attrs.frozen(kw_only=True)
class Step:
    """The call of the chain at which a gateway is stopped."""

    # A JSON-RPC method.
    method: str
    # Whether the call takes effect before.
    has_effect: bool = False
    # Whether the payment must be stored already, or must not.
    is_reserved: bool = False
    kind: str = "stopped"
    gap_s: float = 3600.0


class StoppedGateway(Gateway):
    """A gateway whose clocks the test moves while it is stopped."""

    def __init__(self, folder: Path, chain, key: str, **variables) -> None:
        super().__init__(folder, chain, key, **variables)
        path = folder / "clocks"
        path.write_bytes(bytes(16))
        with path.open("r+b") as opened:
            self._clocks = mmap.mmap(opened.fileno(), 16)
        self.patch(_CLOCKS.format(path=str(path)))
        # How much more time has passed in the world than in this test.
        self.gap_s = 0.0
        self._step: Step | None = None
        # Called while it is stopped.
        self.meanwhile: Callable[[], object] = lambda: None
        self._was_stopped = threading.Event()
        self._result = chain.rpc.result
        chain.rpc.result = self._answer

    def _answer(self, method, *params):
        """Answer a call of the chain, and stop the gateway before or after it."""
        step = self._step
        if step is None or not self._is_due(step, method, params):
            return self._result(method, *params)
        self._step = None
        if step.has_effect:
            result = self._result(method, *params)
            self.stand_still(step.kind, step.gap_s)
            return result
        self.stand_still(step.kind, step.gap_s)
        return self._result(method, *params)

    def _is_due(self, step: "Step", method: str, params: tuple) -> bool:
        # The gateway calls other functions of the token at any time.
        is_meant = method == step.method
        if method == "eth_call":
            is_meant = is_meant and _SETTLE in params[0]["data"]
        return is_meant and step.is_reserved == bool(self.rows("SELECT 1 FROM payments"))

    def stop_at(self, step: "Step") -> None:
        """Stop it when it comes to a step."""
        self._step = step

    def start(self) -> None:
        super().start()
        until(lambda: self.request("GET", "/api/ready")[0] == 200)

    def wait_until_stopped(self) -> None:
        assert self._was_stopped.wait(60), "the gateway has not reached the step"

    def stand_still(self, kind: str, gap_s: float) -> None:
        """Stop, let the time of the world pass, and continue."""
        self.process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.process.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        self.meanwhile()
        self.chain.advance(gap_s)
        self.gap_s += gap_s
        if kind != "lagging":
            self.set_clock()
        if kind == "stopped":
            self._move(8, gap_s)
        self.process.send_signal(signal.SIGCONT)
        self._was_stopped.set()

    def set_clock(self) -> None:
        """Set the wall clock right, as NTP does."""
        struct.pack_into("d", self._clocks, 0, self.gap_s)

    def _move(self, offset: int, seconds: float) -> None:
        (before,) = struct.unpack_from("d", self._clocks, offset)
        struct.pack_into("d", self._clocks, offset, before + seconds)

    def rows(self, sql: str) -> list[tuple]:
        path = self.folder / "data" / "gateway.db"
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return db.execute(sql).fetchall()


class Buyer(threading.Thread):
    """Sends one paid request, and repeats it as a client does while it gets no outcome."""

    def __init__(self, gateway: StoppedGateway, header: str, slug: str = "slow") -> None:
        super().__init__(daemon=True)
        self._gateway, self._header, self._slug = gateway, header, slug
        self.answers: list[tuple[int, dict]] = []

    def run(self) -> None:
        until(self._is_answered, pause_s=0.3)

    def _is_answered(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            self.answers.append(self._gateway.buy(self._header, self._slug))
            return self.answers[-1][0] != 503
        return False

    @property
    def statuses(self) -> list[int]:
        return [status for status, _ in self.answers]

    def end(self) -> tuple[int, dict]:
        """Wait for the outcome, and return it."""
        self.join(120)
        assert not self.is_alive(), self._gateway.log_text()
        return self.answers[-1]


def find_outcome(gateway: StoppedGateway, payer: Payer, answer: tuple[int, dict]) -> str:
    """Return `task`, `nothing` or `refund` once the sale has ended, and check that it holds."""
    until(lambda: not gateway._open_tasks())
    taken = 100_000_000 - gateway.chain.usdc_balance(payer.account.address)
    states = [row[0] for row in gateway.rows("SELECT state FROM payments")]
    statuses = [row[0] for row in gateway.rows("SELECT status FROM tasks")]
    assert taken == gateway.chain.usdc_balance(WALLET)
    status, body = answer
    if taken == 0:
        assert set(states) <= {"released"}
        assert set(statuses) <= {"dropped"}
        assert status == 402, body
        return "nothing"
    assert taken == 20_000
    assert len(states) == len(statuses) == 1
    assert status == 200
    if statuses == ["completed"]:
        assert states == ["settled"]
        return "task"
    assert (statuses, states) == (["failed"], ["refund_due"])
    return "refund"
