"""One thing that needs the operator, and from which numbers on something does."""

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
    """One thing that needs the operator, in words that a page, a message and a terminal print."""

    # Such as `off_sale`; the subject is a slug, a provider, a key, or empty for the gateway.
    condition: str
    subject: str = ""
    level: Level
    title: str
    # What is known of it.
    text: str
    # The one thing to do, as a sentence.
    action: str
    # The key of the page that the button leads to, what it says, and its path.
    page: str
    button: str
    href: str
    # Whether an alarm tells it; pages show it all the same.
    is_told: bool = True

    @property
    def key(self) -> str:
        """Return what tells this condition from every other."""
        return f"{self.condition}:{self.subject}"


@attrs.frozen(kw_only=True)
class Thresholds:
    """When a number needs the operator: for each of them, from which on it is soon and urgent."""

    # In settlements that the gas pays for; it is soon as well when it lasts for less than 3 days.
    gas_soon: int = 200
    gas_urgent: int = 20
    # Refunds that the refund key's ETH pays for.
    refund_gas_soon: int = 20
    # Seconds.
    payment_open_soon_s: float = 2 * MINUTE_S
    payment_open_urgent_s: float = 10 * MINUTE_S
    queue_soon_s: float = MINUTE_S
    queue_urgent_s: float = 10 * MINUTE_S
    refund_soon_s: float = DAY_S
    backup_age_s: float = DAY_S
    drill_age_s: float = 30 * DAY_S
    unclaimed_soon_s: float = 3600.0
    unclaimed_urgent_s: float = DAY_S
    rpc_endpoint_soon_s: float = 15 * MINUTE_S
    node_soon_s: float = MINUTE_S
    disk_soon_s: float = 3 * DAY_S
    clock_soon_s: float = 15.0
    clock_urgent_s: float = MINUTE_S
    blocked_soon_s: float = 5.0
    blocked_urgent_s: float = 30.0
    # Refused within an hour.
    logins_soon: int = 5
    retires_soon_s: float = 30 * DAY_S
    off_sale_urgent_s: float = 15 * MINUTE_S
    # Of the newest 20 of an endpoint.
    failures_soon: int = 5
    failures_urgent: int = 15

    @classmethod
    def of(cls, settings: Settings) -> "Thresholds":
        """Return the thresholds that the settings name."""
        chosen = operator_settings_of(settings)
        gas = parse_pair(chosen.alarm_gas)
        failures = parse_pair(chosen.alarm_failures)
        queue = parse_pair(chosen.alarm_queue_seconds)
        unclaimed = parse_pair(chosen.alarm_unclaimed_hours)
        return cls(
            gas_soon=int(gas[0]),
            gas_urgent=int(gas[1]),
            refund_soon_s=chosen.alarm_refund_hours * 3600.0,
            queue_soon_s=queue[0],
            queue_urgent_s=queue[1],
            failures_soon=int(failures[0]),
            failures_urgent=int(failures[1]),
            unclaimed_soon_s=unclaimed[0] * 3600.0,
            unclaimed_urgent_s=unclaimed[1] * 3600.0,
        )
