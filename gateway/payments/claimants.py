"""Paid requests of this process that may still take their payment."""

import asyncio
import contextlib
from collections.abc import Collection, Iterator

import attrs

from gateway.errors import ExecutionError

_IN_PROGRESS = (
    "Another request with this payment is in progress. Send the same request again in a few "
    "seconds."
)


@attrs.define(eq=False, repr=False)
class Claimant:
    """A paid request, until it is decided whether it takes its payment."""

    # The payment's claim and the hash of the payer's Idempotency-Key, as soon as they are read.
    names: frozenset[str] = frozenset()
    # Whether another node may take the payment.
    may_pay_elsewhere: bool = True
    decided: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    def name(self, *names: str | None) -> None:
        """Set the names; None is no name."""
        self.names = frozenset(filter(None, names))

    def decide(self) -> None:
        """Note that the request takes no payment any more, or that its payment is on record."""
        self.decided.set()


@attrs.define(eq=False, repr=False)
class Claimants:
    """The undecided requests. Those that share a name are twins: they can take one payment."""

    # Seconds that a refusal waits for its twins.
    wait_s: float = 5.0
    _members: set[Claimant] = attrs.field(factory=set, init=False)

    @contextlib.contextmanager
    def joined(self) -> Iterator[Claimant]:
        """Yield a new claimant, which is decided at the end."""
        claimant = Claimant()
        self._members.add(claimant)
        try:
            yield claimant
        finally:
            self._members.discard(claimant)
            claimant.decide()

    def twins_of(self, claimant: Claimant) -> Collection[Claimant]:
        """Return the undecided requests that can take the same payment."""
        names = claimant.names
        if not names:
            return []
        return [
            other
            for other in self._members
            if other.names & names and not (other is claimant or other.decided.is_set())
        ]

    async def wait(self, twins: Collection[Claimant]) -> None:
        """Wait until all are decided; raises `ExecutionError` after `wait_s`."""
        try:
            async with asyncio.timeout(self.wait_s):
                for twin in twins:
                    await twin.decided.wait()
        except TimeoutError:
            raise ExecutionError(_IN_PROGRESS) from None
