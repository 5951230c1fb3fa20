"""The catalogue: endpoints by slug, with the operator's changes, provider and plugin."""

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar, cast

import attrs

from gateway.catalog.circuit_breaker import CircuitBreaker
from gateway.catalog.fallbacks import find_misfit, name_fallback
from gateway.catalog.pricing import apply_change, apply_override, at_price, check_losses
from gateway.catalog.upstream import CLOSE_S, Upstream
from gateway.contracts import Clock, Provider
from gateway.contracts.store import EndpointChange
from gateway.domain import PAGE, Capability, Endpoint, FileKind
from gateway.domain.built_in import KNOWN_FORMATS
from gateway.errors import AccountProblem, NotFound, SettingsError
from gateway.outputs.keys import MediaTypes
from gateway.settings import EndpointOverride
from gateway.telemetry.redaction import Redactor

_Cached = TypeVar("_Cached")
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
    # Returns its fallback if that can make its orders now.
    find_fallback: "Callable[[], Registered | None]" = attrs.field(
        default=lambda: None, eq=False, repr=False
    )

    @property
    def is_paused(self) -> bool:
        """Whether the operator has paused its sales; paid tasks still run."""
        return self.change is not None and self.change.paused_since is not None

    @property
    def sells_now(self) -> bool:
        """Whether it can be bought now: not held or paused, and it or its fallback works."""
        return self.maker is not None

    @property
    def names_model(self) -> bool:
        """Whether its tasks name their model, because a fallback may make them."""
        return self.change is not None and self.change.fallback is not None

    @property
    def works(self) -> bool:
        """Whether it makes orders now: not held or paused, and no circuit open."""
        return not self.held and not self.is_paused and self.open_circuit is None

    @property
    def maker(self) -> "Registered | None":
        """The endpoint that makes its next order: itself, else its fallback; None: it is off sale.

        A fallback only replaces the vendor. A pause is the operator's wish. While one order is the
        vendor's trial, the fallback makes the others: if it fails, they would all be refunds.
        """
        if self.works and not (self.circuit.is_blocked or self.upstream.is_blocked):
            return self
        if self.held or self.is_paused:
            return None
        return self.find_fallback() or (self if self.works else None)

    @property
    def fallback(self) -> "Registered | None":
        """The fallback that makes its next order, or None."""
        maker = self.maker
        return None if maker is self else maker

    def show(self, offer: Endpoint) -> Endpoint:
        """Return an offer for buyers, with the model and provider that make the next order."""
        maker = self.fallback
        if maker is None:
            return offer
        made = maker.endpoint
        return attrs.evolve(offer, model=made.model, provider=made.provider)

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


class Catalog:
    """The endpoints, with the operator's changes applied."""

    def __init__(
        self,
        overrides: Mapping[str, EndpointOverride],
        *,
        now: Clock = time.time,
        slots: int = 4,
        redactor: Redactor | None = None,
    ) -> None:
        self._overrides = overrides
        self._switched_off = {slug for slug, change in overrides.items() if not change.enabled}
        self._now = now
        # Concurrency limit of a provider whose traits set none.
        self._slots = slots
        self._redactor = redactor
        self._registered: dict[str, Registered] = {}
        # Those of plugins, by name.
        self.capabilities: Mapping[str, Capability] = {}
        # Every `output_format` that an endpoint may offer.
        self.output_formats = KNOWN_FORMATS
        self.media_types = MediaTypes()
        # Each endpoint as in the settings file, without live changes.
        self._configured: dict[str, Registered] = {}
        # Time of the newest live change in Unix seconds, if any.
        self.changed_at: float | None = None
        self._upstreams: dict[int, Upstream] = {}
        # Cached results of `cached` by name, and when the next model retires (Unix seconds).
        self._cache: dict[str, object] = {}
        self._cached_until = math.inf

    def declare(self, capabilities: Iterable[Capability]) -> None:
        """Add the capabilities of plugins."""
        self.capabilities = {one.name: one for one in capabilities}
        own = (value for one in self.capabilities.values() for value in one.output_formats)
        self.output_formats = tuple(dict.fromkeys((*KNOWN_FORMATS, *own)))

    def register(self, endpoint: Endpoint, provider: Provider, plugin: str) -> None:
        """Put an endpoint on sale unless the operator has switched it off.

        Raises `ValueError` if the slug is taken, naming both plugins.
        """
        taken = self._registered.get(endpoint.slug)
        if taken is not None:
            raise ValueError(
                f"Slug {endpoint.slug!r} is registered by {taken.upstream.plugin} and by {plugin}. "
                "Uninstall one of the two."
            )
        override = self._overrides.get(endpoint.slug, EndpointOverride())
        changed = apply_override(endpoint, override)
        check_losses(changed, is_allowed=override.allow_loss)
        upstream = self._upstreams.setdefault(
            id(provider),
            Upstream.of(
                provider,
                plugin,
                now=self._now,
                slots=self._slots,
                redactor=self._redactor,
                on_change=self._cache.clear,
            ),
        )
        circuit = CircuitBreaker(provider.name, self._now, self._cache.clear, slug=endpoint.slug)
        registered = Registered(changed, upstream, circuit, override.cost is not None)
        self._registered[endpoint.slug] = self._configured[endpoint.slug] = registered
        self._cache.clear()

    def withdraw(self, plugin: str) -> None:
        """Remove all endpoints of a plugin."""
        self._registered = {
            slug: one for slug, one in self._registered.items() if one.upstream.plugin != plugin
        }
        self._cache.clear()

    def hold(self, reason: str, plugin: str | None = None) -> None:
        """Sell no endpoint of a plugin, or none at all, until the next start; paid tasks run."""
        for known in (self._registered, self._configured):
            for slug, one in known.items():
                if plugin in (None, one.upstream.plugin):
                    known[slug] = attrs.evolve(one, held=reason)
        self._cache.clear()

    def change(self, changes: Mapping[str, EndpointChange]) -> None:
        """Replace all live changes; endpoints without one sell as in the settings file.

        Unknown slugs are ignored: their plugin may be installed again.
        """
        for slug in self._registered:
            configured, change = self._configured[slug], changes.get(slug)
            changed = configured if change is None else self._apply_change(configured, change)
            self._registered[slug] = changed
        self.changed_at = max((one.changed_at for one in changes.values()), default=None)
        self._cache.clear()

    def _apply_change(self, configured: Registered, change: EndpointChange) -> Registered:
        endpoint, one = apply_change(configured.endpoint, change), configured.endpoint
        named = self._configured.get(change.fallback or "")
        return attrs.evolve(
            configured,
            endpoint=endpoint if named is None else name_fallback(endpoint, named.endpoint),
            is_cost_set=configured.is_cost_set or change.cost_micros is not None,
            change=change,
            earlier=tuple((at_price(one, old), old.good_until) for old in change.earlier_prices),
            find_fallback=functools.partial(self._find_fallback, endpoint, change.fallback or ""),
        )

    def _find_fallback(self, bought: Endpoint, chosen: str) -> Registered | None:
        """Return an endpoint's fallback if it works and fits. Its own fallback is not followed."""
        return self.cached(f"maker of {bought.slug}", lambda: self._seek_maker(bought, chosen))

    def _seek_maker(self, bought: Endpoint, chosen: str) -> Registered | None:
        maker = self._registered.get(chosen)
        if maker is None or not self.is_enabled(chosen) or not maker.works:
            return None
        return None if find_misfit(bought, maker.endpoint) else maker

    def allows_loss(self, slug: str) -> bool:
        """Whether the settings file allows an endpoint to be sold below cost."""
        override = self._overrides.get(slug)
        return override is not None and override.allow_loss

    def configured(self, slug: str) -> Endpoint:
        """Return an endpoint as the settings file has it; raises `NotFound`."""
        if slug not in self._configured:
            raise NotFound("There is no such endpoint.")
        return self._configured[slug].endpoint

    def pause_plugin(self, plugin: str, reason: str, *, pause_s: float) -> None:
        """Take all providers of a plugin off sale for at least `pause_s` seconds.

        A successful probe puts each of them back on sale.
        """
        for upstream in self._upstreams.values():
            if upstream.plugin == plugin:
                upstream.circuit.trip(reason, pause_s=pause_s)

    def check_overrides(self) -> None:
        """Raise `SettingsError` for a table `[endpoints.<slug>]` whose slug no plugin registers."""
        for slug in self._overrides:
            if slug not in self._registered:
                known = ", ".join(sorted(self._registered)) or "none"
                raise SettingsError(f"[endpoints.{slug}] names no endpoint. Known are: {known}.")

    def __getitem__(self, slug: str) -> Registered:
        """Return an endpoint by slug; raises `NotFound`."""
        registered = self._registered.get(slug)
        if registered is None or not self.is_enabled(slug):
            raise NotFound("No such endpoint. GET /.well-known/agent-manifest.json lists them.")
        return registered

    def find(self, slug: str) -> Registered | None:
        """Return an endpoint by slug even if it is off sale, or None if no plugin has it."""
        return self._registered.get(slug)

    def find_endpoint(self, slug: str) -> Endpoint | None:
        """Return an endpoint by slug, or None if it is unknown, switched off or retired."""
        registered = self._registered.get(slug) if self.is_enabled(slug) else None
        return None if registered is None else registered.endpoint

    def __iter__(self) -> Iterator[Endpoint]:
        """Yield the endpoints on sale now, in the order of registration."""
        return iter(self._on_sale_now())

    def __len__(self) -> int:
        return len(self._on_sale_now())

    def _on_sale_now(self) -> tuple[Endpoint, ...]:
        return self.cached(
            "endpoints",
            lambda: tuple(
                registered.show(registered.endpoint)
                for slug, registered in self._registered.items()
                if self.is_enabled(slug) and registered.sells_now
            ),
        )

    def cached(self, name: str, make: Callable[[], _Cached]) -> _Cached:
        """Return the cached result of `make`; a change of the catalogue clears the cache."""
        if self._now() >= self._cached_until:
            self._cache.clear()
        if not self._cache:
            coming = (one.endpoint.retires_at for one in self._registered.values())
            self._cached_until = min((at for at in coming if at > self._now()), default=math.inf)
        if name not in self._cache:
            self._cache[name] = make()
        return cast(_Cached, self._cache[name])

    def everything(self) -> list[Registered]:
        """Return every registered endpoint, including those switched off."""
        return list(self._registered.values())

    def offered(self) -> list[Endpoint]:
        """Return every endpoint that is not switched off, including retired ones."""
        return [
            one.endpoint for slug, one in self._registered.items() if slug not in self._switched_off
        ]

    def upstreams(self) -> list[Upstream]:
        """Return every provider, including those of switched-off endpoints."""
        return list(self._upstreams.values())

    def enabled_upstreams(self) -> list[Upstream]:
        """Return every provider of an endpoint that is neither switched off nor retired."""
        found = {
            id(one.upstream): one.upstream
            for slug, one in self._registered.items()
            if self.is_enabled(slug)
        }
        return list(found.values())

    def blocked_slugs(self, max_outage_s: float) -> list[str]:
        """Return the slugs whose tasks have to wait.

        Slugs with a lasting outage are left out: their tasks fail now instead of waiting.
        """
        return [
            slug
            for slug, one in self._registered.items()
            if one.wait_s > 0 and one.find_lasting_outage(max_outage_s) is None
        ]

    def slugs(self) -> list[str]:
        """Return the slug of every registered endpoint, including those switched off."""
        return list(self._registered)

    def switched_off_slugs(self) -> list[str]:
        """Return the slugs of registered endpoints that the settings of this node switch off."""
        return [slug for slug in self._registered if slug in self._switched_off]

    async def close(self, *, timeout_s: float = CLOSE_S) -> None:
        """Close every provider, each within `timeout_s` seconds."""
        for upstream in self.upstreams():
            await upstream.close(timeout_s=timeout_s)

    def is_enabled(self, slug: str) -> bool:
        """Whether a slug is not switched off and its vendor still serves the model."""
        if slug in self._switched_off:
            return False
        registered = self._registered.get(slug)
        if registered is None or registered.endpoint.retires is None:
            return True
        return self._now() < registered.endpoint.retires_at
