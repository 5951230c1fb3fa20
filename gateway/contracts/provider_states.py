"""What the nodes on one database tell each other about providers: off sale, paused, how many share.

A name says what a state is about, such as "provider:fal:fal-image" or "endpoint:picture".
"""

from collections.abc import Sequence
from typing import Protocol

import attrs


@attrs.frozen(kw_only=True)
class OffSale:
    """The vendor refuses the account, or a model: no node may sell it."""

    name: str
    # For the operator.
    reason: str
    # Until the first probe, in seconds.
    rest_s: float


@attrs.frozen(kw_only=True)
class OnSale:
    """A probe or an operator found that it works again."""

    name: str
    # Of the state that was found to be over. A newer one stands.
    epoch: int


@attrs.frozen(kw_only=True)
class Paused:
    """The vendor asks for no submit for some seconds."""

    name: str
    pause_s: float


Report = OffSale | OnSale | Paused


@attrs.frozen(kw_only=True)
class ProviderState:
    """What the database says of one name. Durations are in seconds, counted by its own clock."""

    name: str

    # Grows whenever the name goes off sale or comes back; a pause leaves it.
    epoch: int

    # None while it is on sale.
    off_reason: str | None

    # Until the first probe, and until the next submit; below zero if that is over.
    rest_s: float
    pause_s: float


@attrs.frozen(kw_only=True)
class SharedStates:
    """All that the nodes know."""

    states: Sequence[ProviderState]

    # The names of the nodes that make what is sold, in order. Empty on SQLite.
    workers: Sequence[str]

    # This node's own name; empty on SQLite.
    node: str


class ProviderStates(Protocol):
    """The states that all nodes believe."""

    async def exchange(self, reports: Sequence[Report]) -> SharedStates:
        """Write down what this node found, all of it or nothing, and return what all nodes know."""
        ...
