"""Sends one message by every channel at once, and tells what came of each."""

import asyncio
from collections.abc import Sequence

import attrs

from gateway.contracts import Clock
from gateway.contracts.alarms import AlarmMessage
from gateway.settings import Settings
from gateway_operator.alarms.carriers import LATE, Carrier
from gateway_operator.alarms.messages import make_test

_LIMIT_S = 90.0


@attrs.frozen(kw_only=True)
class Trial:
    """What came of a test message; `problem` None: the channel took it."""

    channel: str
    problem: str | None


async def try_channels(
    settings: Settings, carriers: Sequence[Carrier], now: Clock, *, limit_s: float = _LIMIT_S
) -> list[Trial]:
    """Send a test message by every channel; writes nothing down."""
    found = await asyncio.gather(*(_try(settings, one, now, limit_s) for one in carriers))
    return [trial for trials in found for trial in trials]


async def _try(settings: Settings, carrier: Carrier, now: Clock, limit_s: float) -> list[Trial]:
    alarm = make_test(settings.base_url, settings.name, now())
    messages = [
        # Receivers know a message by its number: a test's is none of the queue's.
        AlarmMessage(id=-place, channel=channel, alarm=alarm, created_at=now(), due_at=None)
        for place, channel in enumerate(carrier.channels, start=int(now()))
    ]
    try:
        async with asyncio.timeout(limit_s):
            outcomes = await carrier.carry({one.channel: [one] for one in messages})
    except TimeoutError:
        outcomes = {}
    except Exception as error:  # noqa: BLE001 - a carrier's edge
        outcomes = {one.id: f"It failed: {type(error).__name__}." for one in messages}
    return [Trial(channel=one.channel, problem=outcomes.get(one.id, LATE)) for one in messages]
