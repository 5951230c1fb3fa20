"""One registered endpoint: its provider, the operator's changes, and why it is not sold."""

import functools
from collections.abc import Callable

import attrs

from gateway.catalog.circuit_breaker import CircuitBreaker
from gateway.catalog.fallbacks import name_fallback
from gateway.catalog.upstream import Upstream
from gateway.contracts.store import EndpointChange
from gateway.domain import PAGE, Endpoint, FileKind
from gateway.errors import AccountProblem, SettingsError

# How long a model that its vendor refused is off sale before one buyer's task tries it again.
_MODEL_PAUSE_S = 6 * 3600.0


@attrs.define(eq=False, repr=False)
class Spare:
    """The endpoint that may make another one's orders in an outage, whether it works now or not."""

    registered: "Registered"
    # The last offer that was shown, its maker, and how it was shown.
    _shown: tuple[Endpoint, Endpoint, Endpoint] | None = None

    def show(self, offer: Endpoint, maker: Endpoint) -> Endpoint:
        """Return an offer for buyers, with its maker and with what happens in an outage."""
        if self._shown is None or self._shown[0] is not offer or self._shown[1] is not maker:
            named = name_fallback(offer, self.registered.endpoint)
            shown = attrs.evolve(named, model=maker.model, provider=maker.provider)
            self._shown = (offer, maker, shown)
        return self._shown[2]


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
    # Whether a reload has removed it. It is not sold, and its paid tasks run until the next start.
    is_removed: bool = False
    # Until when payments still buy it after that (Unix seconds).
    honoured_until: float = 0.0
    # Why its settings are not known, so that it must not be sold; empty: they are.
    held: str = ""
    # Why nothing checks its files and results here. It is not sold, and its paid tasks wait for a
    # node that checks them. Empty: all is checked.
    unchecked: str = ""
    # Returns its fallback unless that cannot make its orders, whatever the vendors do.
    find_spare: Callable[[], Spare | None] = attrs.field(default=lambda: None, eq=False, repr=False)

    def is_offered(self, now: float) -> bool:
        """Whether no reload has removed it, and its vendor still serves the model."""
        return not self.is_removed and now < self.endpoint.retires_at

    def is_payable(self, now: float) -> bool:
        """Whether a payment may buy it: it is offered, or its quotes are still honoured."""
        is_honoured = not self.is_removed or now < self.honoured_until
        return is_honoured and now < self.endpoint.retires_at

    @property
    def is_paused(self) -> bool:
        """Whether the operator has paused its sales; paid tasks still run."""
        return self.change is not None and self.change.paused_since is not None

    @property
    def sells_now(self) -> bool:
        """Whether it can be bought now: no obstacle, not paused, and it or its fallback works."""
        return self.maker is not None

    @property
    def names_model(self) -> bool:
        """Whether its tasks name their model, because a fallback may make them."""
        return self.change is not None and self.change.fallback is not None

    @property
    def works(self) -> bool:
        """Whether it makes orders now: no obstacle, not paused, and no circuit open."""
        return not self.obstacle and not self.is_paused and self.open_circuit is None

    @property
    def maker(self) -> "Registered | None":
        """The endpoint that makes its next order: itself, else its fallback; None: it is off sale.

        A fallback only replaces the vendor: an obstacle or a pause stops it too. While one order is
        the vendor's trial, the fallback makes the others: if it fails, they would all be refunds.
        """
        if self.works and not (self.circuit.is_blocked or self.upstream.is_blocked):
            return self
        if self.obstacle or self.is_paused:
            return None
        spare = self.find_spare()
        if spare is not None and spare.registered.works:
            return spare.registered
        return self if self.works else None

    @property
    def _circuits(self) -> tuple[CircuitBreaker, CircuitBreaker]:
        return self.upstream.circuit, self.circuit

    @property
    def fallback(self) -> "Registered | None":
        """The fallback that makes its next order, or None."""
        if not self.names_model:
            return None
        maker = self.maker
        return None if maker is self else maker

    def show(self, offer: Endpoint) -> Endpoint:
        """Return an offer for buyers: who makes the next order, and who may in an outage.

        Both, since the maker may change between a 402 and its payment.
        """
        spare = self.find_spare()
        return offer if spare is None else spare.show(offer, (self.fallback or self).endpoint)

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

    def reads_file(self, kind: FileKind, *, is_lent: bool = False) -> bool:
        """Whether the gateway reads a file of this kind before payment.

        If a fallback makes the order (`is_lent`), no provider of this endpoint counts the pages.
        """
        price = self.endpoint.unit_price
        is_priced = price is not None and price.unit.measure in kind.measures
        has_pages = PAGE.measure in kind.measures
        counts_pages = self.endpoint.counts_pages if is_lent else self.counts_pages
        return kind.is_always_read or is_priced or (has_pages and counts_pages)

    @functools.cached_property
    def reads_files(self) -> bool:
        """Whether the gateway reads any file of its requests before payment."""
        return any(map(self.reads_file, self.endpoint.file_kinds))

    @property
    def open_circuit(self) -> CircuitBreaker | None:
        """The open circuit that takes it off sale, the vendor's first; None while it works."""
        if self.upstream.circuit.is_open:
            return self.upstream.circuit
        return self.circuit if self.circuit.is_open else None

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
        for circuit in self._circuits:
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


def refuse_taken(taken: Registered | None, plugin: str, *, again: Endpoint | None = None) -> None:
    """Raise `ValueError` for the slug of an endpoint that is registered already.

    A reload registers a plugin's own endpoint `again`. It raises `SettingsError` for another
    capability: earlier quotes and paid tasks would get something else.
    """
    if taken is None:
        return
    slug, before = taken.endpoint.slug, taken.endpoint.capability
    if again is None or taken.upstream.plugin != plugin:
        raise ValueError(
            f"Slug {slug!r} is registered by {taken.upstream.plugin} and by "
            f"{plugin}. Uninstall one of the two."
        )
    if again.capability != before:
        raise SettingsError(
            f"{slug} was {before} and would be {again.capability}, which its buyers have not "
            "ordered. Give the new endpoint another name."
        )


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
