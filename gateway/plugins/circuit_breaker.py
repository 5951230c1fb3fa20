"""Whether a provider is asked at all: a circuit breaker; nobody pays for what cannot work."""

import structlog

from gateway.contracts import Clock

_FAILURES = 5  # in a row, without one success in between
_TASKS = 2  # that they must be of: one buyer's odd request proves nothing
_FIRST_PAUSE_S = 30.0  # until it is tried again; doubles while it stays broken
_LONGEST_PAUSE_S = 1800.0
_DOUBLINGS = 6  # that reach the longest
_log = structlog.get_logger()


class CircuitBreaker:
    """Closed: sells. Open: sells nothing until a probe. On trial: sells, one failure opens it."""

    def __init__(self, provider: str, now: Clock) -> None:
        self._provider = provider
        self._now = now
        self._failures = 0  # in a row
        self._failed_tasks: set[str] = set()  # since the last success
        self._openings = 0  # without a success in between
        self._opened_at = 0.0  # the first of them
        self._probe_at = 0.0
        self.problem: str | None = None  # for the operator; None while it sells

    @property
    def is_open(self) -> bool:
        """Whether the provider must not be asked."""
        return self.problem is not None

    @property
    def is_on_trial(self) -> bool:
        """Whether it sells again, without a success so far."""
        return self._openings > 0 and not self.is_open

    @property
    def is_due(self) -> bool:
        """Whether it is time to probe an open one."""
        return self.is_open and self._now() >= self._probe_at

    @property
    def open_s(self) -> float:
        """For how long it has been open, trials in between included; 0 where it is closed."""
        return self._now() - self._opened_at if self.is_open else 0.0

    def succeeded(self) -> None:
        """Note that the provider did its work, or said no to one request as it should."""
        self._failures = 0
        self._failed_tasks.clear()
        if not self.is_open:
            self._openings = 0

    def failed(self, reason: str, task_id: str) -> None:
        """Note that it did not work; enough of this in a row, of several tasks, opens it.

        On trial one failure does, but not of a task that failed before: its next attempts prove
        nothing new, and whoever bought a few odd ones would keep everybody else away for hours.
        """
        is_new = task_id not in self._failed_tasks
        self._failures += 1
        self._failed_tasks.add(task_id)
        is_repeated = self._failures >= _FAILURES and len(self._failed_tasks) >= _TASKS
        if is_repeated or (self._openings and is_new):
            self.trip(reason)

    def trip(self, reason: str, *, pause_s: float = 0.0) -> None:
        """Open the circuit at once, for `pause_s` seconds at least."""
        if self.is_open:
            return
        if not self._openings:
            self._opened_at = self._now()
        pause_s = max(pause_s, self._longer())
        self._probe_at = self._now() + pause_s
        self.problem = reason
        _log.error("provider.off_sale", provider=self._provider, reason=reason, pause_s=pause_s)

    def stay_open(self, reason: str) -> None:
        """Note that a probe has failed: the next one comes later."""
        self.problem = reason
        self._probe_at = self._now() + self._longer()

    def _longer(self) -> float:
        """Return the pause to make now; the next one is longer."""
        pause_s = min(_FIRST_PAUSE_S * (1 << min(self._openings, _DOUBLINGS)), _LONGEST_PAUSE_S)
        self._openings += 1
        return pause_s

    def try_again(self) -> None:
        """Sell again, on trial: a probe has passed, or there is none."""
        self.problem = None
        self._failures = 0
        _log.warning("provider.on_sale", provider=self._provider)
