"""Limits how much memory the bodies of all requests take together."""

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

    def has_room(self, address: str, more_bytes: int, *, is_small: bool) -> bool:
        """Whether a body may grow by so many bytes."""
        kept = 0.0 if is_small else self._most_bytes * _KEPT_FOR_SMALL
        return (
            self._taken_bytes + more_bytes <= self._most_bytes - kept
            and self._by_address[address] + more_bytes <= self._most_bytes * _PER_ADDRESS
        )

    def change(self, address: str, more_bytes: int) -> None:
        """Write down what an address takes, or with a negative number gives back."""
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
    _address = ""
    _taken_bytes = 0
    _is_over = False

    def admit(self, declared_bytes: int) -> None:
        """Take room for the whole body; raises `BodiesFull` where there is none."""
        if self._must_raise is None and not self._take(declared_bytes):
            raise BodiesFull

    def append(self, data: bytes) -> None:
        """Keep what arrived, or drop all of it where there is no room."""
        if data and self._must_raise is None and not self._take(len(self._data) + len(data)):
            self._must_raise = BodiesFull()
            self._data.clear()
            self.set_complete()
        super().append(data)

    def release(self) -> None:
        """Give the room back: the request is over, and what still arrives is dropped."""
        self._is_over = True
        self._data.clear()
        if self._taken_bytes:
            self.memory.change(self._address, -self._taken_bytes)
            self._taken_bytes = 0

    def _take(self, size: int) -> bool:
        more = size - self._taken_bytes
        if self._is_over:
            return False
        if more <= 0:
            return True
        self._address = self._address or self.address_of()
        if not self.memory.has_room(self._address, more, is_small=size <= SMALL_BODY_BYTES):
            return False
        self.memory.change(self._address, more)
        self._taken_bytes += more
        return True
