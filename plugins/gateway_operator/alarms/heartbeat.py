"""The heartbeat: a request every minute unless an urgent alarm is on. Silence is the alarm."""

import attrs
import structlog

from gateway.contracts import Clock
from gateway_operator.alarms.operator_url import OperatorUrl, RequestFailed

EVERY_S = 60.0
_log = structlog.get_logger()


@attrs.define(kw_only=True)
class Heartbeat:
    """One address, and the result of its last request."""

    address: OperatorUrl
    now: Clock
    every_s: float = EVERY_S
    problem: str | None = attrs.field(default=None, init=False)
    # Unix seconds.
    answered_at: float | None = attrs.field(default=None, init=False)
    _requested_at: float | None = attrs.field(default=None, init=False)

    @property
    def is_due(self) -> bool:
        """Whether a minute has passed since the last request."""
        now = self.now()
        # A clock that was set back must not silence the heartbeat.
        return self._requested_at is None or not 0 <= now - self._requested_at < self.every_s

    async def beat(self) -> None:
        """Send one request; log a problem when it changes."""
        self._requested_at = self.now()
        try:
            await self.address.request("GET")
        except RequestFailed as error:
            if self.problem != str(error):
                _log.warning("heartbeat.failed", problem=str(error))
            self.problem = str(error)
        else:
            self.problem, self.answered_at = None, self.now()
