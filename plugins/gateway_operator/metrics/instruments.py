"""Metrics of this process: requests, refusals, attempts, RPC calls and times.

They start at zero with each start, as Prometheus expects.
"""

from collections.abc import Callable
from typing import Any

from blinker import Signal
from prometheus_client import CollectorRegistry, Counter, Histogram

from gateway.telemetry import signals

_TASK_S = (0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_HTTP_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30)
_RPC_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_SETTLE_S = (0.5, 1, 2, 3, 5, 10, 30, 60, 120)
_COMMIT_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1)


class Instruments:
    """Counters and histograms, updated by the gateway's signals until `close`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._listening: list[tuple[Signal, Callable[..., None]]] = []
        self._count_requests()
        self._count_work()
        self._count_machine()

    def close(self) -> None:
        """Disconnect from the signals."""
        for signal, receiver in self._listening:
            signal.disconnect(receiver)

    def _count_requests(self) -> None:
        http = self._histogram(
            "http_seconds", "Time of a response.", _HTTP_S, "rule", "status_class"
        )
        refused = self._counter("refused", "Purchases that were refused.", "slug", "flow", "code")
        self._listen(
            signals.request_answered,
            lambda rule, status, seconds: http.labels(rule or "none", f"{status // 100}xx").observe(
                seconds
            ),
        )
        self._listen(
            signals.purchase_refused,
            lambda slug, flow, code: refused.labels(slug, flow, code).inc(),
        )

    def _count_work(self) -> None:
        attempts = self._counter("attempts", "Attempts at a provider.", "provider", "result")
        tasks = self._histogram(
            "task_seconds", "From a task's first attempt to its end.", _TASK_S, "slug"
        )
        settled = self._histogram(
            "settlement_seconds",
            "From the first submit until the outcome was seen on-chain.",
            _SETTLE_S,
            "settler",
        )
        self._listen(
            signals.attempt_ended,
            lambda provider, result: attempts.labels(provider, result).inc(),
        )
        self._listen(signals.task_ended, lambda slug, seconds: tasks.labels(slug).observe(seconds))
        self._listen(
            signals.payment_settled,
            lambda settler, seconds: settled.labels(settler).observe(seconds),
        )

    def _count_machine(self) -> None:
        calls = self._counter(
            "rpc_calls", "RPC calls to the chain.", "endpoint", "method", "result"
        )
        rpc = self._histogram("rpc_seconds", "Time of an RPC call.", _RPC_S, "endpoint")
        commits = self._histogram("commit_seconds", "Time of a commit.", _COMMIT_S)
        blocked = self._counter(
            "loop_blocked_seconds", "Time for which a plugin held the event loop.", "plugin"
        )
        dropped = self._counter("log_lines_dropped", "Log lines that were dropped.")

        def count_call(endpoint: int, method: str, result: str, seconds: float) -> None:
            calls.labels(str(endpoint), method, result).inc()
            rpc.labels(str(endpoint)).observe(seconds)

        self._listen(signals.rpc_answered, count_call)
        self._listen(signals.batch_committed, lambda **took: commits.observe(took["seconds"]))
        self._listen(
            signals.loop_blocked, lambda plugin, seconds: blocked.labels(plugin).inc(seconds)
        )
        self._listen(signals.log_lines_dropped, lambda **lost: dropped.inc(lost["lines"]))

    def _listen(self, signal: Signal, count: Callable[..., None]) -> None:
        def receive(_: Any, **facts: Any) -> None:
            count(**facts)

        # By default blinker holds a weak reference and would drop this receiver.
        signal.connect(receive, weak=False)
        self._listening.append((signal, receive))

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"gateway_{name}", about, labels, registry=self.registry)

    def _histogram(
        self, name: str, about: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        return Histogram(f"gateway_{name}", about, labels, buckets=buckets, registry=self.registry)
