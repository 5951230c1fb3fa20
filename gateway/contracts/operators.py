"""What the store promises an operator: sums beside the sales, and actions that are written down."""

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

import attrs

Value = TypeVar("Value")
Door = Literal["page", "api", "cli", "gateway"]


@attrs.frozen(kw_only=True)
class Actor:
    """Who acts, and through which door."""

    door: Door

    # A session's short id, a token's name, or a user of the shell.
    name: str

    # Of the client; empty for the CLI.
    address: str = ""

    # What makes a repeated request known, such as an Idempotency-Key with the actor's name.
    request: str | None = None


@attrs.frozen(kw_only=True)
class NewAction:
    """What an operator did, before it is written down."""

    actor: Actor

    # Unix seconds.
    at: float

    # Such as `refund.approve`.
    action: str

    # A task, an endpoint, an alarm.
    subject: str
    reason: str = ""

    # What JSON can hold; None where there is nothing to say.
    before: object = None
    after: object = None


@attrs.frozen(kw_only=True)
class ActionRecord(NewAction):
    """What an operator did, as the store keeps it."""

    id: int


class AlreadyDone(Exception):
    """The same request was carried out before; `action` is what was written down then."""

    def __init__(self, action: ActionRecord) -> None:
        super().__init__(f"This was done already, as action {action.id}.")
        self.action = action


Field = Literal["paused", "price", "cost"]


@attrs.frozen(kw_only=True)
class EarlierPrice:
    """A price that an endpoint had a moment ago, whose 402s are still good."""

    # None: the price of the settings file.
    price_units: int | None

    # Unix seconds.
    good_until: float


@attrs.frozen(kw_only=True)
class EndpointChange:
    """What an operator changed about an endpoint, above the settings file."""

    # Unix seconds of the newest change, one that takes another back included.
    changed_at: float

    # Unix seconds; None: it sells.
    paused_since: float | None = None
    pause_reason: str = ""

    # None: as the settings file says.
    price_units: int | None = None
    cost_micros: int | None = None
    earlier_prices: tuple[EarlierPrice, ...] = ()


class OperatorRecords(Protocol):
    """What an operator reads and does. Each method is one write, or one read."""

    async def sum(self, function: Callable[..., Value], *arguments: Any) -> Value:
        """Return `function(db, *arguments)` of one state of the database.

        `db` is a read-only connection on a thread of its own, so that a long sum holds up neither
        sales nor polls. Its rows are known by position and by name.
        """
        ...

    async def read(self, function: Callable[..., Value], *arguments: Any) -> Value:
        """Return `function(db, *arguments)` of a function that takes microseconds.

        It runs beside the sums, so it never waits for one.
        """
        ...

    async def write(self, write: Callable[..., Value], *arguments: Any) -> Value:
        """Run `write(db, *arguments)`, which is no action of an operator, such as a backup's row.

        Returns what `write` returns, and raises what it raises.
        """
        ...

    async def act(self, write: Callable[..., Value], *arguments: Any, action: NewAction) -> Value:
        """Write down an action and run `write(db, *arguments)`, both or neither.

        Returns what `write` returns, and raises what it raises. Raises `AlreadyDone` where the
        actor's request was carried out before, and `ActionRefused` where another action had it.
        """
        ...

    async def changes_after(
        self, known: int, *, now: float
    ) -> tuple[int, dict[str, EndpointChange]] | None:
        """Return (number, changes by slug), or None where `known` is the newest number.

        The number grows with each change. Cheap: a running gateway asks every two seconds.
        """
        ...

    async def note(self, action: NewAction) -> None:
        """Write down an action that changes nothing in the database, such as a login.

        Raises what `act` raises.
        """
        ...

    async def actions(
        self,
        before: int | None,
        limit: int,
        subject: str | None = None,
        action: str | None = None,
    ) -> list[ActionRecord]:
        """Return actions, newest first: those with an id below `before`, at most `limit`."""
        ...
