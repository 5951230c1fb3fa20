"""Conditions that need the operator, and their thresholds."""

from typing import Literal

import attrs

from gateway.settings import Settings
from gateway_operator.settings import operator_settings_of, parse_pair

# `bad` is urgent, `warn` is soon, `note` is a notice.
Level = Literal["bad", "warn", "note"]
MINUTE_S = 60.0
DAY_S = 86_400.0


@attrs.frozen(kw_only=True)
class Condition:
    """A condition that needs the operator, with its texts."""

    # Such as `off_sale`; the subject is a slug, a provider, a key, or empty for the gateway.
    condition: str
    subject: str = ""
    level: Level
    title: str
    text: str
    # The one thing to do, as a sentence.
    action: str
    # Where the button leads: page key, label, path.
    page: str
    button: str
    href: str
    # Whether it raises an alarm; pages always show it.
    raises_alarm: bool = True

    @property
    def key(self) -> str:
        """The unique name of this condition."""
        return f"{self.condition}:{self.subject}"


@attrs.frozen(kw_only=True)
class Thresholds:
    """From which values a condition is soon or urgent."""

    # In remaining settlements; also soon if less than three days of sales are left.
    gas_soon: int = 200
    gas_urgent: int = 20
    # In remaining refunds.
    refund_gas_soon: int = 20
    # Seconds.
    payment_open_soon_s: float = 2 * MINUTE_S
    payment_open_urgent_s: float = 10 * MINUTE_S
    queue_soon_s: float = MINUTE_S
    queue_urgent_s: float = 10 * MINUTE_S
    refund_soon_s: float = DAY_S
    backup_age_s: float = DAY_S
    drill_age_s: float = 30 * DAY_S
    unused_soon_s: float = 3600.0
    unused_urgent_s: float = DAY_S
    rpc_endpoint_soon_s: float = 15 * MINUTE_S
    node_soon_s: float = MINUTE_S
    disk_soon_s: float = 3 * DAY_S
    clock_soon_s: float = 15.0
    clock_urgent_s: float = MINUTE_S
    blocked_soon_s: float = 5.0
    blocked_urgent_s: float = 30.0
    # Within an hour.
    logins_soon: int = 5
    retires_soon_s: float = 30 * DAY_S
    off_sale_urgent_s: float = 15 * MINUTE_S
    # Of an endpoint's newest 20 finished tasks.
    failures_soon: int = 5
    failures_urgent: int = 15

    @classmethod
    def of(cls, settings: Settings) -> "Thresholds":
        """Return the thresholds of the settings."""
        chosen = operator_settings_of(settings)
        gas = parse_pair(chosen.alarm_gas)
        failures = parse_pair(chosen.alarm_failures)
        queue = parse_pair(chosen.alarm_queue_seconds)
        unused = parse_pair(chosen.alarm_unclaimed_hours)
        return cls(
            gas_soon=int(gas[0]),
            gas_urgent=int(gas[1]),
            refund_soon_s=chosen.alarm_refund_hours * 3600.0,
            queue_soon_s=queue[0],
            queue_urgent_s=queue[1],
            failures_soon=int(failures[0]),
            failures_urgent=int(failures[1]),
            unused_soon_s=unused[0] * 3600.0,
            unused_urgent_s=unused[1] * 3600.0,
        )
