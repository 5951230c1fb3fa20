"""When the simulated chain makes its blocks: five a second, as Base since its Denim upgrade.

Five blocks in a row share a timestamp, which has whole seconds. Some histories are slower, and some
change the pace in the middle, as Denim did.
"""

import random

import attrs

from tests.proof.simulation.world import EPOCH

PAST_S = 4_200  # the chain is older than its shops: longer than any authorization is valid
_BASE_MS, _OLD_MS, _L1_MS = 200, 2_000, 12_000
# The paces of a history, in turn, and how often it has them.
_KINDS = {
    (_BASE_MS,): 65,
    (_OLD_MS,): 10,
    (_L1_MS,): 5,
    (_OLD_MS, _BASE_MS): 12,
    (_BASE_MS, _OLD_MS): 8,
}
_CHANGES_S = ((-600.0, 0.0), (0.0, 45.0), (0.0, 45.0))  # when the pace changes, from the beginning


@attrs.frozen
class _Era:
    """A time of one pace; its first block has this number and this time."""

    number: int
    began_ms: int
    pace_ms: int


@attrs.frozen
class Pace:
    """The number of the newest block at each moment. Times are Unix milliseconds."""

    _eras: tuple[_Era, ...]

    @classmethod
    def draw(cls, seed: int) -> "Pace":
        """Return a history's pace, drawn by its own random generator."""
        dice = random.Random(f"pace {seed}")
        paces = dice.choices(tuple(_KINDS), tuple(_KINDS.values()))[0]
        change_s = dice.uniform(*dice.choice(_CHANGES_S))
        return cls.of(*paces, change_ms=EPOCH * 1000 + int(change_s * 1000))

    @classmethod
    def of(cls, pace_ms: int, then_ms: int | None = None, *, change_ms: int = 0) -> "Pace":
        """Return a pace, and another one from the first block after `change_ms` on."""
        first = _Era(0, (EPOCH - PAST_S) * 1000, pace_ms)
        if then_ms is None:
            return cls((first,))
        number = (change_ms - first.began_ms) // pace_ms + 1
        return cls((first, _Era(number, first.began_ms + number * pace_ms, then_ms)))

    def time_of(self, number: int) -> int:
        """Return a block's time."""
        era = next(era for era in reversed(self._eras) if era.number <= max(number, 0))
        return era.began_ms + (number - era.number) * era.pace_ms

    def newest(self, at_ms: int) -> int:
        """Return the newest block at a moment; the first one for any moment before it."""
        for era in reversed(self._eras):
            if era.began_ms <= at_ms:
                return era.number + (at_ms - era.began_ms) // era.pace_ms
        return 0

    def first_from(self, at_ms: int) -> int:
        """Return the first block of this time or later."""
        return self.newest(at_ms - 1) + 1
