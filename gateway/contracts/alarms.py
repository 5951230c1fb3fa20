"""What a message to the operator says; a plugin's `gateway_notify` takes one."""

from typing import Literal

import attrs

Urgency = Literal["notice", "soon", "urgent"]
Event = Literal["raised", "again", "ended", "digest", "test"]


@attrs.frozen(kw_only=True)
class Alarm:
    """One message to the operator. It names no key, no prompt and no payer."""

    # `raised`: it holds, or became urgent; `again`: it is urgent since a day.
    event: Event

    # Such as `gas`, or `off_sale:openai`: what `gateway alarms mute` takes.
    key: str
    urgency: Urgency

    # What is so, in a few words.
    title: str

    # What was found, and what it costs now.
    text: str

    # What to do; empty where there is nothing to do.
    todo: str

    # Where an operator does it: a page of this gateway.
    link: str

    # Unix seconds; `ended_at` is None while it holds.
    since: float
    ended_at: float | None = None

    # Name of the gateway that tells it.
    gateway: str = ""
