"""Limits how much memory the bodies of all requests take together, and shares it out.

An address may take much of it while there is room. Where there is none, unfinished bodies of
addresses that take more make way: else a few slow clients would keep all others out.
"""

from collections import Counter
from collections.abc import Callable

from quart.wrappers.request import Body

from gateway.errors import BodiesFull

SMALL_BODY_BYTES = 64 * 1024
# Of the whole: large bodies leave this much to small ones, and one address takes no more.
_KEPT_FOR_SMALL = 1 / 8
_PER_ADDRESS = 1 / 2


class BodyMemory:
    """What the bodies of all requests may take, and take now."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._by_address: Counter[str] = Counter()
        self._taken_bytes = 0
        self._arriving: dict[CountedBody, None] = {}  # the oldest first

    def take(self, body: "CountedBody", more_bytes: int, *, is_small: bool) -> bool:
        """Let a body grow by so many bytes, in the place of others where need be.

        Returns False where it cannot, and then no other made way for it.
        """
        own = self._by_address[body.address] + more_bytes
        kept = 0.0 if is_small else self._most_bytes * _KEPT_FOR_SMALL
        missing = self._taken_bytes + more_bytes - (self._most_bytes - kept)
        others = self._in_the_way(own, missing)
        if own > self._most_bytes * _PER_ADDRESS or others is None:
            return False
        for other in others:
            other.give_way()
        self._change(body.address, more_bytes)
        self._arriving[body] = None
        return True

    def stay(self, body: "CountedBody") -> None:
        """Let a body that is whole make way for no other."""
        self._arriving.pop(body, None)

    def give_back(self, body: "CountedBody", taken_bytes: int) -> None:
        """Give back all that a body took."""
        self.stay(body)
        self._change(body.address, -taken_bytes)

    def _in_the_way(self, own: int, missing: float) -> "list[CountedBody] | None":
        """Return the oldest bodies that have to make way; None where all would be too few.

        Each is of an address that takes more than the one that asks would take.
        """
        takes, found = Counter[str](), []
        for body in self._arriving if missing > 0 else ():
            takes[body.address] = takes[body.address] or self._by_address[body.address]
            if takes[body.address] > own:
                takes[body.address] -= body.taken_bytes
                missing -= body.taken_bytes
                found.append(body)
            if missing <= 0:
                break
        return found if missing <= 0 else None

    def _change(self, address: str, more_bytes: int) -> None:
        self._taken_bytes += more_bytes
        self._by_address[address] += more_bytes
        if not self._by_address[address]:
            del self._by_address[address]


class CountedBody(Body):
    """A request's body that takes its memory from a `BodyMemory` and gives it back at the end.

    A route that reads it takes the declared length first; what comes unasked or without a
    length is taken as it arrives.
    """

    memory: BodyMemory
    address_of: Callable[[], str]
    address = ""
    taken_bytes = 0
    _is_over = False

    def admit(self, declared_bytes: int) -> None:
        """Take room for the whole body; raises `BodiesFull` where there is none."""
        if self._must_raise is None and not self._take(declared_bytes):
            raise BodiesFull

    def append(self, data: bytes) -> None:
        """Keep what arrived, or drop all of it where there is no room."""
        if data and self._must_raise is None and not self._take(len(self._data) + len(data)):
            self.give_way()
        super().append(data)

    def set_complete(self) -> None:
        """Let the request be answered: its body is whole, or will never be."""
        self.memory.stay(self)
        super().set_complete()

    def give_way(self) -> None:
        """Refuse the body, whatever came of it, and give its room back."""
        self._must_raise = BodiesFull()
        self._give_back()
        self.set_complete()

    def release(self) -> None:
        """Give the room back: the request is over, and what still arrives is dropped."""
        self._is_over = True
        self._give_back()

    def _give_back(self) -> None:
        self._data.clear()
        if self.taken_bytes:
            self.memory.give_back(self, self.taken_bytes)
            self.taken_bytes = 0

    def _take(self, size: int) -> bool:
        more = size - self.taken_bytes
        if self._is_over:
            return False
        if more <= 0:
            return True
        self.address = self.address or self.address_of()
        if not self.memory.take(self, more, is_small=size <= SMALL_BODY_BYTES):
            return False
        self.taken_bytes += more
        if self._complete.is_set():
            self.memory.stay(self)
        return True
