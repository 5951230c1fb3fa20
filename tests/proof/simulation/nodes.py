"""The endpoints of the chain: each may lag, show a replaced block, or keep little state."""

import random

import attrs

from gateway import Block, ChainUnavailable
from tests.proof.simulation.blocks import MinedBlock, number_of
from tests.proof.simulation.chain import SimulatedChain
from tests.proof.simulation.world import World

_LAGS_S = (0.2, 0.2, 0.6, 2.0, 4.0, 10.0)  # of an endpoint behind
_LOGS_BEHIND_S = 8.0
_LAGGING_LOGS = 0.2  # of the endpoints index logs late, as some vendors do


@attrs.frozen
class Vendor:
    """The limits that an endpoint has in every weather."""

    kept_states: int | None  # of its newest blocks; None: of all
    log_lag_s: float  # until the logs of a block can be searched

    @classmethod
    def draw(cls, seed: int, place: int) -> "Vendor":
        """Return an endpoint's limits, drawn by its own random generator."""
        dice = random.Random(f"vendor {seed} {place}")
        return cls(
            kept_states=dice.choice((None, None, None, 128)),
            log_lag_s=dice.uniform(1.0, 180.0) if dice.random() < _LAGGING_LOGS else 0.0,
        )


class Node:
    """One endpoint: its newest block may be old, or a replaced one."""

    def __init__(self, place: int, chain: SimulatedChain, world: World) -> None:
        self._vendor = Vendor.draw(world.seed, place)
        self.place = place
        self._chain = chain
        self._world = world

    def tip(self) -> MinedBlock:
        """Return the newest block that this endpoint knows now."""
        world, chain = self._world, self._chain
        newest = number = chain.stuck.get(self.place, chain.head_number)
        if world.strikes(world.odds.lag, "endpoint behind"):
            number = min(chain.number_before(world.dice.choice(_LAGS_S)), newest)
            orphan = next(reversed(chain.orphans.values()), None)
            is_there = orphan is not None and number <= orphan.number <= newest
            if is_there and world.strikes(0.5, "replaced block shown"):
                return orphan
        return chain.at(number)

    def find(self, block_hash: str) -> MinedBlock:
        """Return a block by hash. Raises `ChainUnavailable` if it is not known here yet."""
        return self._find(block_hash, self.tip())

    def _find(self, block_hash: str, tip: MinedBlock) -> MinedBlock:
        number = number_of(block_hash)
        if number <= tip.number:
            for block in (self._chain.at(number), self._chain.orphans.get(number)):
                if block is not None and block.hash == block_hash:
                    return block
        raise ChainUnavailable("unknown block")

    def numbered(self, number: int) -> MinedBlock | None:
        """Return the block of a number in this endpoint's chain; None above its newest block."""
        return self._numbered(number, self.tip())

    def _numbered(self, number: int, tip: MinedBlock) -> MinedBlock | None:
        if number >= tip.number:
            return tip if number == tip.number else None
        return self._chain.at(number)

    def state_of(self, at: Block | int | None) -> MinedBlock:
        """Return a block whose state is read. Raises `ChainUnavailable` if it is gone here."""
        tip = self.tip()
        if at is None:
            return tip
        block = self._numbered(at, tip) if isinstance(at, int) else self._find(at.hash, tip)
        if block is None:
            raise ChainUnavailable("unknown block")
        kept = self._vendor.kept_states
        if kept is not None and block.number <= tip.number - kept:
            self._world.faults["state of an old block gone"] += 1
            raise ChainUnavailable("missing trie node")
        return block

    def indexed(self) -> int:
        """Return the newest block whose logs can be searched here."""
        world, lag_s = self._world, self._vendor.log_lag_s
        world.faults["log index late"] += bool(lag_s)
        if world.strikes(world.odds.lag / 4, "logs behind"):
            lag_s = max(lag_s, _LOGS_BEHIND_S)
        return self._chain.number_before(lag_s)
