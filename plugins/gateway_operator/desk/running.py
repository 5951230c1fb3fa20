"""Data that only a running gateway has, and a command does not."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs

from gateway.contracts import Selling
from gateway.contracts.parts import Condition
from gateway.settings import SectionOffer, Settings


@attrs.frozen(kw_only=True)
class Check:
    """The result of one check. `stops` names the sales that stop while it fails."""

    name: str
    ok: bool
    stops: str
    # Without secrets; empty if ok.
    problem: str = ""

    @property
    def stops_all_sales(self) -> bool:
        """Whether nothing is sold while the check fails."""
        return self.stops in ("everything", "paid routes")

    @property
    def stops_nothing(self) -> bool:
        """Whether the check stops no sales."""
        return self.stops == "nothing"


@attrs.frozen(kw_only=True)
class Running:
    """The desk's access to the running gateway."""

    # Unix seconds.
    started_at: float
    checks: Callable[[], Awaitable[Sequence[Check]]]
    selling: Callable[[Sequence[Check]], Selling]
    # Empty with a facilitator.
    settlement_keys: Callable[[], Sequence[str]]
    # Of plugins' parts.
    conditions: Callable[[], Awaitable[Sequence[Condition]]]
    # Return a task's undelivered events: type, failed attempts.
    undelivered: Callable[[str], Awaitable[Sequence[tuple[str, int]]]]
    # By plugin: its longest block in the last ten minutes, in seconds.
    blocked: Callable[[], Mapping[str, float]] = dict
    # Variables that no plugin reads, and the channels of alarms.
    ignored_settings: Callable[[], Sequence[str]] = tuple
    channels: Callable[[], Sequence[str]] = tuple
    # The plugins' settings, and a trial of settings that raises `SettingsError`.
    sections: Sequence[SectionOffer]
    try_settings: Callable[[Settings], Awaitable[None]]
