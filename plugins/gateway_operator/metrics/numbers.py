"""The numbers of one scrape, read from database, catalog and facts."""

from collections import Counter
from collections.abc import Sequence

import attrs

from gateway_operator.desk.desk import Desk
from gateway_operator.metrics.state import State, read_state
from gateway_operator.sql import totals
from gateway_operator.sql.totals import Ended, ReadTotals, Sales, Waiting

# Gas is summed over all transactions, so it is read less often.
_GAS_S = 60.0


@attrs.frozen(kw_only=True)
class Totals:
    """Totals since the first sale."""

    # By slug and flow: sales, and 10⁻⁶ USDC.
    sales: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    units: Counter[tuple[str, str]] = attrs.field(factory=Counter)

    # By slug and outcome.
    tasks: Counter[tuple[str, str]] = attrs.field(factory=Counter)

    # By slug: 10⁻⁶ US dollars, and completed tasks without a known cost.
    cost_micros: Counter[str] = attrs.field(factory=Counter)
    unknown_costs: Counter[str] = attrs.field(factory=Counter)

    def plus(self, sales: Sequence[Sales], ended: Sequence[Ended]) -> "Totals":
        """Return totals that include these sales and tasks."""
        known = attrs.asdict(self, recurse=False)
        new = Totals(**{name: counter.copy() for name, counter in known.items()})
        for one in sales:
            new.sales[one.slug, one.flow] += one.sales
            new.units[one.slug, one.flow] += one.units
        for each in ended:
            new.tasks[each.slug, each.outcome] += each.tasks
            new.cost_micros[each.slug] += each.cost_micros
            new.unknown_costs[each.slug] += each.unknown_costs
        return new


@attrs.frozen(kw_only=True)
class Numbers:
    """One scrape."""

    at: float
    totals: Totals
    queue: Sequence[Waiting]
    payments: Sequence[Waiting]
    refunds: Sequence[Waiting]

    # In wei, by purpose.
    gas_wei: dict[str, float]

    # By provider.
    on_sale: dict[str, bool]

    state: State


class Reader:
    """Reads the numbers of each scrape, and remembers final totals."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._final = Totals()
        self._payments = self._tasks = 0
        self._gas: dict[str, float] = {}
        self._gas_until = 0.0

    async def read(self) -> Numbers:
        """Return the current numbers.

        If the database cannot be read, SQLite raises `sqlite3.Error` and PostgreSQL
        `StoreUnavailable`.
        """
        now = self._desk.now()
        store = self._desk.store
        found = await store.sum(totals.read_totals, self._payments, self._tasks)
        self._remember(found)
        if now >= self._gas_until:
            self._gas = await store.sum(totals.gas_by_purpose)
            self._gas_until = now + _GAS_S
        return Numbers(
            at=now,
            totals=self._final.plus(found.new_sales, found.new_ended),
            queue=found.queue,
            payments=found.payments,
            refunds=found.refunds,
            gas_wei=self._gas,
            on_sale={
                upstream.provider.name: not upstream.circuit.is_open
                for upstream in self._desk.catalog.upstreams()
            },
            state=await read_state(self._desk),
        )

    def _remember(self, found: ReadTotals) -> None:
        self._final = self._final.plus(found.final_sales, found.final_ended)
        self._payments, self._tasks = found.last_payment, found.last_task
