"""A history's shared state: random generator, loop and clock, trace, fault count."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable

import attrs

from tests.proof.simulation.loop import VirtualLoop

EPOCH = 1_800_000_000  # Unix seconds at which every history begins


@attrs.define
class Odds:
    """The hostility of the environment, drawn once per history."""

    rpc_error: float
    answer_lost: float  # a request's answer does not reach its client
    lag: float  # an endpoint is behind
    late: float  # a call takes long
    send_swallowed: float  # an endpoint takes a transaction and forgets it
    not_mined: float  # a pending transaction waits for another block
    dropped: float  # a pending transaction is forgotten by all
    reorganised: float  # the newest block is replaced
    crash: float  # kill -9 right after a commit or a broadcast

    @classmethod
    def draw(cls, dice: random.Random) -> "Odds":
        return cls(
            rpc_error=dice.choice((0.0, 0.02, 0.05, 0.15, 0.3)),
            answer_lost=dice.choice((0.0, 0.05, 0.2)),
            lag=dice.choice((0.0, 0.2, 0.5)),
            late=dice.choice((0.0, 0.02, 0.08)),
            send_swallowed=dice.choice((0.0, 0.05, 0.3)),
            not_mined=dice.choice((0.1, 0.35, 0.7)),
            dropped=dice.choice((0.0, 0.03, 0.1)),
            reorganised=dice.choice((0.0, 0.0, 0.03, 0.2)),
            crash=dice.choice((0.0, 0.0, 0.01, 0.05)),
        )


class World:
    """The only source of chance and time; it records everything that happens."""

    def __init__(self, seed: int, *, tracing: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.loop = VirtualLoop()
        self.odds = Odds.draw(self.dice)
        # How often an endpoint has the receipt of a pending transaction.
        self.preconfirmed = random.Random(f"early receipts {seed}").choice((0.0, 0.0, 0.3, 0.9))
        self.faults: Counter[str] = Counter()
        self.is_healed = False
        self.silent_until = 0.0  # of the loop's time: no endpoint answers before
        self._tracing = tracing
        self._digest = hashlib.sha256()

    def now(self) -> float:
        return EPOCH + self.loop.time()

    @property
    def is_traced(self) -> bool:
        return self._tracing is not None

    def note(self, text: str) -> None:
        """Add a line to the trace; free if the trace is off."""
        if self._tracing is None:
            return
        line = f"{self.loop.time():10.3f} #{self.loop.steps:<6} {text}"
        self._digest.update(line.encode())
        self._tracing(line)

    def digest(self) -> str:
        """Return the hash of the trace so far."""
        return self._digest.hexdigest()

    def strikes(self, chance: float, kind: str) -> bool:
        """Whether a fault happens now; none does once the world is healed."""
        if self.is_healed or chance == 0.0 or self.dice.random() >= chance:
            return False
        self.faults[kind] += 1
        self.note(f"fault: {kind}")
        return True
