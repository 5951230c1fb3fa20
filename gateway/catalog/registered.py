"""One registered endpoint: its provider, the operator's changes, and why it is not sold."""

import functools

import attrs

from gateway.catalog.circuit_breaker import CircuitBreaker
from gateway.catalog.pricing import Prices, set_cost, set_prices
from gateway.catalog.upstream import Upstream
from gateway.contracts.store import EarlierPrice, EndpointChange
from gateway.domain import PAGE, Endpoint, FileKind
from gateway.errors import AccountProblem

# How long a model that its vendor refused is off sale before one buyer's task tries it again.
_MODEL_PAUSE_S = 6 * 3600.0


@attrs.frozen
class Registered:
    """An endpoint and the provider that generates for it."""

    endpoint: Endpoint
    upstream: Upstream
    # The model's circuit breaker: open while the vendor does not serve it. The vendor's own is in
    # `upstream`.
    circuit: CircuitBreaker
    # Whether the operator has set the cost of one generation.
    is_cost_set: bool = False
    # The operator's live change, which overrides the settings file.
    change: EndpointChange | None = None
    # The endpoint at its recent prices, each with the time until which a 402 with that price is
    # honoured (Unix seconds).
    earlier: tuple[tuple[Endpoint, float], ...] = ()
    # Why its settings are not known, so that it must not be sold; empty: they are.
    held: str = ""
    # Why nothing checks its files and results here. It is not sold, and its paid tasks wait for a
    # node that checks them. Empty: all is checked.
    unchecked: str = ""

    @property
    def is_paused(self) -> bool:
        """Whether the operator has paused its sales; paid tasks still run."""
        return self.change is not None and self.change.paused_since is not None

    @property
    def sells_now(self) -> bool:
        """Whether it can be bought now: no obstacle, not paused, and no circuit open."""
        return not self.obstacle and not self.is_paused and self.open_circuit is None

    @property
    def obstacle(self) -> str:
        """Why it is not sold before the next start, for the operator; empty: it may be."""
        return self.unchecked or self.held

    @property
    def counts_pages(self) -> bool:
        """Whether the gateway counts a document's pages before payment."""
        if self.endpoint.prices_pages:
            return True
        return self.endpoint.counts_pages and not self.upstream.traits.limits_pages

    def reads_file(self, kind: FileKind) -> bool:
        """Whether the gateway reads a file of this kind before payment."""
        price = self.endpoint.unit_price
        is_priced = price is not None and price.unit.measure in kind.measures
        has_pages = PAGE.measure in kind.measures
        return kind.is_always_read or is_priced or (has_pages and self.counts_pages)

    @functools.cached_property
    def reads_files(self) -> bool:
        """Whether the gateway reads any file of its requests before payment."""
        return any(map(self.reads_file, self.endpoint.file_kinds))

    @property
    def open_circuit(self) -> CircuitBreaker | None:
        """The open circuit that takes it off sale, the vendor's first; None while it works."""
        both = (self.upstream.circuit, self.circuit)
        return next((circuit for circuit in both if circuit.is_open), None)

    @property
    def wait_s(self) -> float:
        """Seconds until a submit may go out; infinite if that depends on something else."""
        return float("inf") if self.circuit.is_blocked else self.upstream.wait_s

    def find_lasting_outage(self, max_outage_s: float) -> CircuitBreaker | None:
        """Return an open circuit that paid tasks should not wait for, if any.

        Either only the operator can close it, or it has been open longer than `max_outage_s` or the
        endpoint's timeout.
        """
        most_s = min(max_outage_s, self.endpoint.timeout_s)
        for circuit in (self.upstream.circuit, self.circuit):
            if circuit.is_open and (circuit.is_account or circuit.open_s > most_s):
                return circuit
        return None

    def note_account_problem(self, error: AccountProblem, reason: str, *, pause_s: float) -> None:
        """Take the provider off sale, or only this endpoint if only its model is refused.

        `reason` is for the operator. The provider is off sale for at least `pause_s` seconds. A
        model is off sale longer, because probing the account does not show whether it is back.
        """
        is_of_vendor = error.scope == "vendor"
        circuit = self.upstream.circuit if is_of_vendor else self.circuit
        pause_s = pause_s if is_of_vendor else max(pause_s, _MODEL_PAUSE_S)
        circuit.trip(reason, pause_s=pause_s, is_account=True)

    def succeeded(self) -> None:
        """Note a success, or a proper refusal of one request."""
        self.upstream.circuit.succeeded()
        self.circuit.succeeded()


def mark_undeclared(registered: Registered) -> Registered:
    """Note if no declaration says how to check an endpoint's files and results."""
    if registered.endpoint.is_declared:
        return registered
    name = registered.endpoint.capability
    return attrs.evolve(
        registered,
        unchecked=f"no plugin declares the capability {name}, so nothing checks its results. "
        f"Install or enable the plugin that declares {name}, then restart.",
    )


def apply_change(configured: Registered, change: EndpointChange) -> Registered:
    """Return an endpoint with a live change applied.

    A new price scales every price step, as in the settings file, except those that were set apart.
    """
    endpoint = _at_price(configured.endpoint, change)
    if change.cost_micros is not None:
        endpoint = set_cost(endpoint, change.cost_micros)
    return attrs.evolve(
        configured,
        endpoint=endpoint,
        is_cost_set=configured.is_cost_set or change.cost_micros is not None,
        change=change,
        earlier=tuple(
            (_at_price(configured.endpoint, one), one.good_until) for one in change.earlier_prices
        ),
    )


def _at_price(endpoint: Endpoint, chosen: EndpointChange | EarlierPrice) -> Endpoint:
    if chosen.price_units is None:
        return endpoint
    return set_prices(endpoint, Prices(chosen.price_units, chosen.more_units))
