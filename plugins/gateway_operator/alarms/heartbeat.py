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
    # Gets a POST when the gateway goes to sleep, with this key in `X-Api-Key`.
    pause_address: OperatorUrl | None = None
    pause_key: str = attrs.field(default="", repr=False)
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

    async def pause(self) -> None:
        """Report to the monitor that no request follows; log a warning if that is impossible."""
        problem = "GATEWAY_HEARTBEAT_PAUSE_URL is not set."
        if self.pause_address is not None:
            headers = {"X-Api-Key": self.pause_key} if self.pause_key else {}
            try:
                await self.pause_address.request("POST", headers=headers)
            except RequestFailed as error:
                problem = str(error)
            else:
                _log.info("heartbeat.paused")
                return
        _log.warning("heartbeat.not_paused", problem=problem)
