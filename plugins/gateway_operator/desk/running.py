"""What only the running gateway can tell an operator; a command on the database has none of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs

from gateway.contracts import Selling
from gateway.contracts.parts import Condition


@attrs.frozen(kw_only=True)
class Check:
    """Whether one thing works. `stops` names what is not sold while it does not."""

    name: str
    ok: bool
    stops: str
    # What was found; empty while it works. Secrets are taken out.
    problem: str = ""

    @property
    def stops_all_sales(self) -> bool:
        """Whether nothing is sold while the check fails."""
        return self.stops in ("everything", "paid routes")

    @property
    def stops_nothing(self) -> bool:
        """Whether all is sold although the check fails."""
        return self.stops == "nothing"


@attrs.frozen(kw_only=True)
class Running:
    """The running gateway, as the desk asks it."""

    # Unix seconds.
    started_at: float
    checks: Callable[[], Awaitable[Sequence[Check]]]
    # What can be bought now, after these checks.
    selling: Callable[[Sequence[Check]], Selling]
    # The addresses that pay the gas of x402 settlements; empty for a facilitator.
    settlement_keys: Callable[[], Sequence[str]]
    # What the plugins' parts add.
    conditions: Callable[[], Awaitable[Sequence[Condition]]]
    # Type and failed attempts of each event of a task that waits for its receiver.
    undelivered: Callable[[str], Awaitable[Sequence[tuple[str, int]]]]
    # By plugin: its longest block of the event loop in the last ten minutes, in seconds.
    blocked: Callable[[], Mapping[str, float]] = dict
