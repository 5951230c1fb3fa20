"""The alarm webhook: one signed POST per message (Standard Webhooks)."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import attrs

from gateway.contracts import Clock
from gateway.contracts.parts import Alarm
from gateway_operator.alarms.carriers import Outcomes
from gateway_operator.alarms.operator_url import OperatorUrl, RequestFailed
from gateway_operator.alarms.records import AlarmMessage
from gateway_webhooks.signing import sign

CHANNEL = "webhook"


@attrs.define(kw_only=True)
class Webhook:
    """Posts messages to the operator's URL."""

    address: OperatorUrl
    secret: str = attrs.field(repr=False)
    now: Clock
    channels: tuple[str, ...] = (CHANNEL,)

    async def carry(self, batches: Mapping[str, Sequence[AlarmMessage]]) -> Outcomes:
        """Post messages in order; after the first failure the others wait."""
        outcomes: Outcomes = {}
        for message in batches.get(CHANNEL, ()):
            try:
                await self._post(message)
            except RequestFailed as error:
                outcomes[message.id] = str(error)
                break
            outcomes[message.id] = None
        return outcomes

    def close(self) -> None:
        """Nothing to release."""

    async def _post(self, message: AlarmMessage) -> None:
        body = json.dumps(body_of(message.alarm, message.created_at)).encode()
        # Retries have the same id, so that receivers can recognize them.
        headers = sign(self.secret, f"alarm_{message.id}", self.now(), body)
        await self.address.request("POST", body, headers)


def body_of(alarm: Alarm, at: float) -> dict[str, object]:
    """Return the webhook's JSON body."""
    return {
        "type": f"alarm.{alarm.event}",
        "timestamp": _iso(at),
        "data": {
            "gateway": alarm.gateway,
            "key": alarm.key,
            "urgency": alarm.urgency,
            "title": alarm.title,
            "text": alarm.text,
            "todo": alarm.todo,
            "link": alarm.link,
            "since": _iso(alarm.since),
            "endedAt": None if alarm.ended_at is None else _iso(alarm.ended_at),
        },
    }


def _iso(at: float) -> str:
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
