"""Circuit breakers: a provider or model that fails goes off sale, so that no buyer pays for it.

Each provider has one for the vendor's account and service, each endpoint one for its model.
"""

import contextlib
from collections.abc import Callable, Iterator

import structlog

from gateway.contracts import Clock

# Failures in a row that open the circuit.
_FAILURES = 5
# They must come from this many tasks: one buyer's odd request proves nothing.
_TASKS = 2
# Until the first probe of an open circuit; doubles while probes fail.
_FIRST_PAUSE_S = 30.0
_LONGEST_PAUSE_S = 1800.0
# The pause doubles at most this often.
_DOUBLINGS = 6
_log = structlog.get_logger()


class CircuitBreaker:
    """Closed: sells. Open: off sale until a probe. On trial (half-open): one failure opens it."""

    def __init__(
        self,
        provider: str,
        now: Clock,
        on_change: Callable[[], None] = lambda: None,
        *,
        slug: str | None = None,
    ) -> None:
        self._provider = provider
        # Set if this is the circuit of one endpoint's model.
        self._slug = slug
        self._now = now
        # Called whenever `problem` has been set, and when a submit on trial begins or ends.
        self._on_change = on_change
        # Failures in a row.
        self._failures = 0
        # The tasks that failed since the last success.
        self._failed_tasks: set[str] = set()
        # Openings since the last success, and the time of the first of them.
        self._openings = 0
        self._opened_at = 0.0
        # When an open circuit is probed next, in Unix seconds.
        self.probe_at = 0.0
        # Submits in progress.
        self._working = 0
        # For the operator; None unless the circuit is open.
        self.problem: str | None = None
        # Whether only the operator can fix it: a wrong key, no credit, a model that is gone.
        self.is_account = False

    @property
    def is_open(self) -> bool:
        """Whether the circuit is open."""
        return self.problem is not None

    @property
    def is_blocked(self) -> bool:
        """Whether no submit may start now: on trial they run one at a time."""
        return self.is_open or (self._openings > 0 and self._working > 0)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Count the block as a submit in progress."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        self._working += more
        if self.is_on_trial:
            self._on_change()

    @property
    def is_on_trial(self) -> bool:
        """Whether it sells again but has not succeeded yet."""
        return self._openings > 0 and not self.is_open

    @property
    def is_due(self) -> bool:
        """Whether it is time to probe an open circuit."""
        return self.is_open and self._now() >= self.probe_at

    @property
    def open_s(self) -> float:
        """Seconds since the circuit first opened, including trials; 0 unless it is open."""
        return self._now() - self._opened_at if self.is_open else 0.0

    def succeeded(self) -> None:
        """Note a success, or a proper refusal of one request."""
        self._failures = 0
        self._failed_tasks.clear()
        if self.is_on_trial:
            self._openings = 0
            self._on_change()

    def failed(self, reason: str, task_id: str, *, is_once: bool = False) -> None:
        """Note a failure; enough in a row open the circuit, and on trial the first one does.

        On trial, a task that failed before does not reopen it at once. Otherwise one buyer's bad
        request could keep an endpoint off sale for hours. A failure that may be due to the request
        `is_once`: it counts once per task.
        """
        is_new = task_id not in self._failed_tasks
        if is_once and not is_new:
            return
        self._failures += 1
        self._failed_tasks.add(task_id)
        is_repeated = self._failures >= _FAILURES and len(self._failed_tasks) >= _TASKS
        if is_repeated or (self._openings and is_new):
            self.trip(reason)

    def trip(self, reason: str, *, pause_s: float = 0.0, is_account: bool = False) -> None:
        """Open the circuit at once, for at least `pause_s` seconds.

        If it is open already, nothing changes, unless `is_account` is new: that replaces reason
        and pause.
        """
        if self.is_open and (self.is_account or not is_account):
            return
        if not self._openings:
            self._opened_at = self._now()
        pause_s = max(pause_s, self._next_pause_s())
        self.probe_at = self._now() + pause_s
        self._set_problem(reason, is_account=is_account)
        if self._slug is None:
            _log.error("provider.off_sale", provider=self._provider, reason=reason, pause_s=pause_s)
        else:
            _log.error("endpoint.off_sale", slug=self._slug, reason=reason, pause_s=pause_s)

    def stay_open(self, reason: str, *, is_account: bool = False) -> None:
        """Note a failed probe; the next one comes after a longer pause."""
        self._set_problem(reason, is_account=self.is_account or is_account)
        self.probe_at = self._now() + self._next_pause_s()

    def _next_pause_s(self) -> float:
        """Return the pause before the next probe, and count an opening, which doubles the next."""
        pause_s = min(_FIRST_PAUSE_S * (1 << min(self._openings, _DOUBLINGS)), _LONGEST_PAUSE_S)
        self._openings += 1
        return pause_s

    def try_again(self) -> None:
        """Sell again, on trial, after a passed probe or if the provider cannot be probed."""
        self._set_problem(None)
        self._failures = 0
        if self._slug is None:
            _log.warning("provider.on_sale", provider=self._provider)
        else:
            _log.warning("endpoint.on_sale", slug=self._slug)

    def _set_problem(self, problem: str | None, *, is_account: bool = False) -> None:
        self.problem, self.is_account = problem, is_account
        self._on_change()
