"""A circuit breaker: takes what does not work off sale, so that no buyer pays for it.

Each provider has one, for the vendor's account and service, and each endpoint one for its model.
"""

import contextlib
from collections.abc import Callable, Iterator

import structlog

from gateway.contracts import Clock

# Failures in a row, without a success in between, that open the circuit.
_FAILURES = 5
# The failures must be of this many tasks: one buyer's odd request proves nothing.
_TASKS = 2
# Until the first probe of an open circuit; doubles while the provider stays broken.
_FIRST_PAUSE_S = 30.0
_LONGEST_PAUSE_S = 1800.0
# The pause doubles at most this often.
_DOUBLINGS = 6
_log = structlog.get_logger()


class CircuitBreaker:
    """Closed: sells. Open: sells nothing until a probe. On trial: sells, one failure opens it."""

    def __init__(
        self,
        provider: str,
        now: Clock,
        on_change: Callable[[], None] = lambda: None,
        *,
        slug: str | None = None,
    ) -> None:
        self._provider = provider
        # The endpoint, if the circuit is only that of its model.
        self._slug = slug
        self._now = now
        # Called each time after `problem` was set.
        self._on_change = on_change
        # Failures in a row.
        self._failures = 0
        # The tasks that failed since the last success.
        self._failed_tasks: set[str] = set()
        # How often it opened without a success in between, and when it did so first.
        self._openings = 0
        self._opened_at = 0.0
        self._probe_at = 0.0
        # Submits that are at work.
        self._working = 0
        # For the operator; None while the provider sells.
        self.problem: str | None = None
        # Whether only the operator can help: a wrong key, no credit, a model that is gone.
        self.is_account = False

    @property
    def is_open(self) -> bool:
        """Whether the provider must not be asked."""
        return self.problem is not None

    @property
    def is_blocked(self) -> bool:
        """Whether no submit may go out now: on trial they go one at a time."""
        return self.is_open or (self.is_on_trial and self._working > 0)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Note that a submit is at work within the block."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1

    @property
    def is_on_trial(self) -> bool:
        """Whether the provider sells again but has had no success so far."""
        return self._openings > 0 and not self.is_open

    @property
    def is_due(self) -> bool:
        """Whether it is time to probe an open circuit."""
        return self.is_open and self._now() >= self._probe_at

    @property
    def open_s(self) -> float:
        """Seconds since the circuit opened, trials in between included; 0 if it is closed."""
        return self._now() - self._opened_at if self.is_open else 0.0

    @property
    def probe_at(self) -> float:
        """When an open circuit is probed next, in Unix seconds."""
        return self._probe_at

    def succeeded(self) -> None:
        """Note that the provider did its work, or refused one request as it should."""
        self._failures = 0
        self._failed_tasks.clear()
        if not self.is_open:
            self._openings = 0

    def failed(self, reason: str, task_id: str) -> None:
        """Note that the provider failed at a task; enough failures in a row open the circuit.

        On trial the first failure opens it. A task that failed before does not reopen the circuit:
        otherwise one buyer's bad requests could keep an endpoint off sale for hours.
        """
        is_new = task_id not in self._failed_tasks
        self._failures += 1
        self._failed_tasks.add(task_id)
        is_repeated = self._failures >= _FAILURES and len(self._failed_tasks) >= _TASKS
        if is_repeated or (self._openings and is_new):
            self.trip(reason)

    def trip(self, reason: str, *, pause_s: float = 0.0, is_account: bool = False) -> None:
        """Open the circuit at once, for `pause_s` seconds at least.

        An open circuit stays as it is, unless `is_account` is news: then its reason and its pause
        are replaced.
        """
        if self.is_open and (self.is_account or not is_account):
            return
        if not self._openings:
            self._opened_at = self._now()
        pause_s = max(pause_s, self._next_pause_s())
        self._probe_at = self._now() + pause_s
        self._set_problem(reason, is_account=is_account)
        if self._slug is None:
            _log.error("provider.off_sale", provider=self._provider, reason=reason, pause_s=pause_s)
        else:
            _log.error("endpoint.off_sale", slug=self._slug, reason=reason, pause_s=pause_s)

    def stay_open(self, reason: str, *, is_account: bool = False) -> None:
        """Note that a probe has failed; the next probe comes after a longer pause."""
        self._set_problem(reason, is_account=self.is_account or is_account)
        self._probe_at = self._now() + self._next_pause_s()

    def _next_pause_s(self) -> float:
        """Return the pause before the next probe, and count an opening: the one after is longer."""
        pause_s = min(_FIRST_PAUSE_S * (1 << min(self._openings, _DOUBLINGS)), _LONGEST_PAUSE_S)
        self._openings += 1
        return pause_s

    def try_again(self) -> None:
        """Sell again, on trial: a probe has passed, or the provider cannot be probed."""
        self._set_problem(None)
        self._failures = 0
        if self._slug is None:
            _log.warning("provider.on_sale", provider=self._provider)
        else:
            _log.warning("endpoint.on_sale", slug=self._slug)

    def _set_problem(self, problem: str | None, *, is_account: bool = False) -> None:
        self.problem, self.is_account = problem, is_account
        self._on_change()
