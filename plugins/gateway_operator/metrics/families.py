"""Metrics read at each scrape: names, help, units and labels.

`instruments.py` has the metrics of this process. A test compares docs/metrics.md with both.
"""

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gateway.version import VERSION
from gateway_operator.metrics.numbers import Numbers, Totals
from gateway_operator.metrics.state import collect_state
from gateway_operator.sql.totals import Waiting

_PREFIX = "gateway_"
_UNITS = 10**6
_WEI = 10**18


class Families:
    """A collector of prometheus_client; yields the numbers of one scrape."""

    def __init__(self, numbers: Numbers, network: str) -> None:
        self._numbers = numbers
        self._network = network

    def collect(self) -> Iterator[Metric]:
        """Yield every family, even without samples, so that its name is known."""
        yield from _sold(self._numbers.totals)
        yield from _made(self._numbers.totals)
        yield from _waiting(self._numbers)
        yield from collect_state(self._numbers.state)
        yield _family(
            GaugeMetricFamily,
            "provider_on_sale",
            "Whether a provider is on sale: 1 or 0.",
            {(name,): float(is_on) for name, is_on in self._numbers.on_sale.items()},
            "provider",
        )
        yield _family(
            CounterMetricFamily,
            "gas_eth",
            "ETH that mined transactions have cost, by purpose: settle or refund.",
            {(purpose,): wei / _WEI for purpose, wei in self._numbers.gas_wei.items()},
            "purpose",
        )
        yield _family(
            GaugeMetricFamily,
            "info",
            "1; its labels are the version and the network.",
            {(VERSION, self._network): 1.0},
            "version",
            "network",
        )


def _sold(totals: Totals) -> Iterator[Metric]:
    yield _family(
        CounterMetricFamily, "sales", "Payments that arrived.", totals.sales, "slug", "flow"
    )
    units = {key: units / _UNITS for key, units in totals.units.items()}
    yield _family(CounterMetricFamily, "sold_usdc", "USDC that arrived.", units, "slug", "flow")


def _made(totals: Totals) -> Iterator[Metric]:
    about = "Tasks that ended: completed, or the details of the failure."
    yield _family(CounterMetricFamily, "tasks", about, totals.tasks, "slug", "outcome")
    costs = {(slug,): micros / _UNITS for slug, micros in totals.cost_micros.items()}
    about = "US dollars that vendors charged for completed tasks whose cost is known."
    yield _family(CounterMetricFamily, "vendor_cost_usd", about, costs, "slug")
    unknown = {(slug,): tasks for slug, tasks in totals.unknown_costs.items()}
    about = "Completed tasks whose cost is not known."
    yield _family(CounterMetricFamily, "vendor_cost_unknown", about, unknown, "slug")


def _waiting(numbers: Numbers) -> Iterator[Metric]:
    at = numbers.at
    queue = _by_state(numbers.queue, "queued", "processing")
    payments = _by_state(numbers.payments, "reserved", "settling")
    refunds = _by_state(numbers.refunds, "refund_due", "refunding", "refund_failed")
    for name, about, found in (
        ("queue_tasks", "Tasks that are queued or running.", _counts(queue)),
        ("queue_oldest_seconds", "Age of the oldest of them.", _ages(queue, at)),
        ("payments_open", "Payments whose outcome is not known yet.", _counts(payments)),
        ("payment_oldest_open_seconds", "Age of the oldest of them.", _ages(payments, at)),
        ("refunds", "Refunds that are not paid.", _counts(refunds)),
        ("refunds_usdc", "USDC of these refunds.", _sums(refunds)),
        ("refund_oldest_seconds", "Age of the oldest of them.", _ages(refunds, at)),
    ):
        yield _family(GaugeMetricFamily, name, about, found, "state")


def _by_state(found: Any, *states: str) -> dict[str, Waiting]:
    """Add states without items: these are 0, not unknown."""
    empty = {state: Waiting(state=state, count=0, units=0, oldest_at=0.0) for state in states}
    return empty | {one.state: one for one in found}


def _counts(found: dict[str, Waiting]) -> dict[tuple[str, ...], float]:
    return {(state,): float(one.count) for state, one in found.items()}


def _sums(found: dict[str, Waiting]) -> dict[tuple[str, ...], float]:
    return {(state,): one.units / _UNITS for state, one in found.items()}


def _ages(found: dict[str, Waiting], at: float) -> dict[tuple[str, ...], float]:
    return {
        (state,): max(0.0, at - one.oldest_at) if one.count else 0.0 for state, one in found.items()
    }


def _family(kind: Any, name: str, about: str, found: Any, *labels: str) -> Metric:
    family: Any = kind(_PREFIX + name, about, labels=labels)
    for values, number in sorted(found.items()):
        family.add_metric(list(values), float(number))
    made: Metric = family
    return made
