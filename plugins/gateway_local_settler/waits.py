"""Whether payments wait for a settlement key: for its lock, or for one of its nonces."""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator

from gateway import Condition
from gateway.contracts import Clock

# A write that takes longer has waited for other writes of its key. One of its own takes a few
# round trips to the database.
_LONG_S = 0.25
# A key is busy if in this many of the last minutes so many payments waited, and such a share.
_BUSY_MINUTES, _MINUTES = 3, 5
_BUSY_WAITS, _BUSY_SHARE = 5, 0.1


class KeyWaits:
    """Counts, for each key and minute, the signed transactions and those that had to wait."""

    def __init__(self, now: Clock, *, has_locks: bool) -> None:
        """`has_locks`: each key has its lock. SQLite has one for all, so more keys end no wait."""
        self._now = now
        self._has_locks = has_locks
        # By key and minute.
        self._signed: Counter[tuple[str, int]] = Counter()
        self._waited: Counter[tuple[str, int]] = Counter()
        # The busy keys of all machines, as far as they share their keys.
        self.busy_anywhere: Collection[str] = ()

    @contextlib.contextmanager
    def measured(self, key: str) -> Iterator[None]:
        """Measure the write that signs, unless it fails."""
        began_at = self._now()
        yield
        self._note(key, has_waited=self._has_locks and self._now() - began_at > _LONG_S)

    def note_refused(self, key: str) -> None:
        """Note a payment that has to wait for a nonce of the key. Call this once per payment."""
        self._note(key, has_waited=True)

    def _note(self, key: str, *, has_waited: bool) -> None:
        minute = int(self._now() // 60)
        self._signed[key, minute] += 1
        self._waited[key, minute] += has_waited
        if self._signed[key, minute] == 1:
            self._forget_before(minute - _MINUTES)

    def _forget_before(self, minute: int) -> None:
        for counts in (self._signed, self._waited):
            for one in [one for one in counts if one[1] <= minute]:
                del counts[one]

    def find_busy(self) -> list[str]:
        """Return the keys for which payments have waited in most of the last minutes."""
        newest = int(self._now() // 60)
        minutes: Counter[str] = Counter()
        for (key, minute), waited in self._waited.items():
            least = max(_BUSY_WAITS, _BUSY_SHARE * self._signed[key, minute])
            minutes[key] += minute > newest - _MINUTES and waited >= least
        return sorted(key for key, count in minutes.items() if count >= _BUSY_MINUTES)

    def find_conditions(self) -> list[Condition]:
        """Return the condition for the operator, if any key of this or another machine is busy."""
        busy = sorted({*self.find_busy(), *self.busy_anywhere})
        if not busy:
            return []
        return [
            Condition(
                name="keys_busy",
                level="warn",
                title="Settlement keys limit sales",
                text=f"For minutes, x402 payments have waited for {', '.join(busy)}: signing takes "
                "its turn, or 64 transactions of the key were not mined yet.",
                action="If the chain makes blocks and the database is fast, add keys to "
                "GATEWAY_SETTLEMENT_KEYS, each with a little ETH, and restart. docs/scale.md has "
                "how many. Otherwise more keys do not help.",
            )
        ]
