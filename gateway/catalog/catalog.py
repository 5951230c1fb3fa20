"""The catalogue: endpoints by slug, with the operator's changes, provider and plugin."""

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar, cast

import attrs

from gateway.catalog.circuit_breaker import CircuitBreaker
from gateway.catalog.earlier import EarlierOffers
from gateway.catalog.fallbacks import find_misfit
from gateway.catalog.pricing import apply_change, apply_override, check_losses
from gateway.catalog.registered import Registered, Spare, mark_undeclared, refuse_taken
from gateway.catalog.replaced import Replaced, replace_all
from gateway.catalog.upstream import CLOSE_S, Upstream
from gateway.contracts import Clock, Provider
from gateway.contracts.store import EndpointChange
from gateway.domain import Capability, Endpoint
from gateway.domain.built_in import KNOWN_FORMATS
from gateway.errors import NotFound, SettingsError
from gateway.outputs.keys import MediaTypes
from gateway.settings import EndpointOverride
from gateway.telemetry.redaction import Redactor
from gateway.telemetry.spans import Spans

_Cached = TypeVar("_Cached")


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
        # Those of plugins, by name. Always the same object.
        self.capabilities: dict[str, Capability] = {}
        # Their plugins, by the capability's name.
        self._declaring: dict[str, str] = {}
        # Capabilities whose functions are not loaded yet: their paid tasks wait for that.
        self.unproven: set[str] = set()
        self.media_types = MediaTypes()
        # Each endpoint as in the settings file, without live changes.
        self._configured: dict[str, Registered] = {}
        self._changes: Mapping[str, EndpointChange] = {}
        self._earlier = EarlierOffers(now)
        # Why plugins' endpoints are held, and capabilities are not checked.
        self._held: dict[str | None, str] = {}
        self._unchecked: dict[str, str] = {}
        self._spans = Spans()
        # Time of the newest live change in Unix seconds, if any.
        self.changed_at: float | None = None
        self._upstreams: dict[int, Upstream] = {}
        # Of plugins that were left out; they have yet to be closed.
        self.withdrawn: list[Upstream] = []
        # Cached results of `cached` by name, and when the next model retires (Unix seconds).
        self._cache: dict[str, object] = {}
        self._cached_until = math.inf

    def declare(self, capability: Capability, plugin: str) -> None:
        """Add a capability of a plugin."""
        self.capabilities[capability.name] = capability
        self._declaring[capability.name] = plugin
        self._note_capabilities()

    def named_capabilities(self) -> list[Capability]:
        """Return the plugins' capabilities that an endpoint names; nothing is loaded for others."""
        named = {one.endpoint.capability for one in self._registered.values()}
        return [one for name, one in self.capabilities.items() if name in named]

    def _note_capabilities(self) -> None:
        self.media_types.reset(self.capabilities.values())

    @property
    def output_formats(self) -> tuple[str, ...]:
        """Every `output_format` that an endpoint may offer."""
        return self.cached("output formats", self._find_output_formats)

    def _find_output_formats(self) -> tuple[str, ...]:
        own = (value for one in self.named_capabilities() for value in one.output_formats)
        return tuple(dict.fromkeys((*KNOWN_FORMATS, *own)))

    def register(self, endpoint: Endpoint, provider: Provider, plugin: str) -> None:
        """Put an endpoint on sale unless the operator has switched it off.

        Raises `ValueError` if the slug is taken, naming both plugins.
        """
        refuse_taken(self._registered.get(endpoint.slug), plugin)
        upstream = self._upstreams.get(id(provider)) or self._wrap(provider, plugin)
        registered = self._make(endpoint, upstream)
        self._upstreams[id(provider)] = upstream
        self._registered[endpoint.slug] = self._configured[endpoint.slug] = registered
        self._cache.clear()

    def _wrap(self, provider: Provider, plugin: str) -> Upstream:
        upstream = Upstream.of(
            provider,
            plugin,
            now=self._now,
            slots=self._slots,
            redactor=self._redactor,
            on_change=self._cache.clear,
        )
        upstream.spans = self._spans
        return upstream

    def _make(self, endpoint: Endpoint, upstream: Upstream) -> Registered:
        """Apply the settings file to an endpoint. Raises `SettingsError` for a loss."""
        override = self._overrides.get(endpoint.slug, EndpointOverride())
        changed = apply_override(endpoint, override)
        check_losses(changed, is_allowed=override.allow_loss)
        name = upstream.provider.name
        circuit = CircuitBreaker(name, self._now, self._cache.clear, slug=endpoint.slug)
        made = Registered(changed, upstream, circuit, override.cost is not None)
        held = self._held.get(upstream.plugin) or self._held.get(None, "")
        unchecked = self._unchecked.get(endpoint.capability, "") if endpoint.declared else ""
        return mark_undeclared(attrs.evolve(made, held=held, unchecked=unchecked))

    def replace(self, plugin: str, offers: Iterable[tuple[Endpoint, Provider]]) -> Replaced:
        """Replace the endpoints of a plugin while the gateway runs: all, or none if this raises.

        An endpoint that is gone is not sold, and its paid tasks run until the next start. Quotes of
        what is replaced or gone are honoured to their end. A provider that equals an earlier one
        does not replace it. Raises `ValueError` for a slug of another plugin, and `SettingsError`.
        """
        before = {k: one for k, one in self._registered.items() if one.upstream.plugin == plugin}
        upstreams = [one for one in self._upstreams.values() if one.plugin == plugin]
        made: dict[str, Registered] = {}
        for endpoint, provider in offers:
            refuse_taken(self._registered.get(endpoint.slug), plugin, again=endpoint)
            upstream = next((one for one in upstreams if one.provider == provider), None)
            if upstream is None:
                upstream = self._wrap(provider, plugin)
                upstreams.append(upstream)
            made[endpoint.slug] = self._make(endpoint, upstream)
        configured = {slug: self._configured[slug] for slug in before}
        replaced = replace_all(configured, made, now=self._now())
        self._configured |= replaced.endpoints
        in_use = {id(one.upstream.provider): one.upstream for one in self._configured.values()}
        self.withdrawn += [one for key, one in self._upstreams.items() if key not in in_use]
        self._upstreams = in_use
        for slug, old in before.items():
            new, change = self._configured[slug].endpoint, self._changes.get(slug)
            self._earlier.note(old, new if change is None else apply_change(new, change))
        self.change(self._changes)
        return replaced

    def trace(self, spans: Spans) -> None:
        """Trace the calls of every provider, also of those that a reload adds."""
        self._spans = spans
        for upstream in self._upstreams.values():
            upstream.spans = spans

    def withdraw(self, plugin: str) -> None:
        """Remove all that a plugin has registered.

        Endpoints of other plugins with one of its capabilities stay, but nothing checks them.
        """
        for name in [name for name, owner in self._declaring.items() if owner == plugin]:
            del self.capabilities[name], self._declaring[name]
        # Also the media types of a declaration that was refused.
        self._note_capabilities()
        for known in (self._registered, self._configured):
            for slug, one in list(known.items()):
                if one.upstream.plugin == plugin:
                    del known[slug]
                elif not self._has_declaration(one.endpoint):
                    endpoint = attrs.evolve(one.endpoint, declared=None)
                    known[slug] = mark_undeclared(attrs.evolve(one, endpoint=endpoint))
        gone = [one for one in self._upstreams.values() if one.plugin == plugin]
        self.withdrawn += gone
        for upstream in gone:
            del self._upstreams[id(upstream.provider)]
        self._cache.clear()

    def _has_declaration(self, endpoint: Endpoint) -> bool:
        """Whether the declaration that an endpoint carries, if any, is still there."""
        declared = endpoint.declared
        return declared is None or self.capabilities.get(declared.name) is declared

    def hold(self, reason: str, plugin: str | None = None) -> None:
        """Sell no endpoint of a plugin, or none at all, until the next start; paid tasks run."""
        self._held[plugin] = reason
        for known in (self._registered, self._configured):
            for slug, one in known.items():
                if plugin in (None, one.upstream.plugin):
                    known[slug] = attrs.evolve(one, held=reason)
        self._cache.clear()

    def change(self, changes: Mapping[str, EndpointChange]) -> None:
        """Replace all live changes; endpoints without one sell as in the settings file.

        Unknown slugs are ignored: their plugin may be installed again.
        """
        self._changes = changes
        for slug, configured in self._configured.items():
            change = changes.get(slug)
            changed = configured if change is None else self._apply_change(configured, change)
            earlier = self._earlier.of(configured, change)
            self._registered[slug] = attrs.evolve(changed, earlier=earlier) if earlier else changed
        self.changed_at = max((one.changed_at for one in changes.values()), default=None)
        self._cache.clear()

    def _apply_change(self, configured: Registered, change: EndpointChange) -> Registered:
        endpoint = apply_change(configured.endpoint, change)
        return attrs.evolve(
            configured,
            endpoint=endpoint,
            is_cost_set=configured.is_cost_set or change.cost_micros is not None,
            change=change,
            find_spare=functools.partial(self._find_spare, endpoint, change.fallback or ""),
        )

    def _find_spare(self, bought: Endpoint, chosen: str) -> Spare | None:
        """Return an endpoint's fallback if it fits and is checked. Its own one is not followed."""
        return self.cached(f"spare of {bought.slug}", lambda: self._seek_spare(bought, chosen))

    def _seek_spare(self, bought: Endpoint, chosen: str) -> Spare | None:
        maker = self._registered.get(chosen)
        if maker is None or not self.is_enabled(chosen) or maker.obstacle:
            return None
        return None if find_misfit(bought, maker.endpoint) else Spare(maker)

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

    def lost_overrides(self) -> list[str]:
        """Return the slugs of such tables whose endpoints a reload has removed."""
        known = self._registered
        return [slug for slug in self._overrides if slug in known and known[slug].is_removed]

    def __getitem__(self, slug: str) -> Registered:
        """Return an endpoint by slug; raises `NotFound`."""
        registered = self._registered.get(slug)
        if registered is None or not self.is_enabled(slug):
            raise NotFound("No such endpoint. GET /.well-known/agent-manifest.json lists them.")
        return registered

    def payable(self, slug: str) -> Registered:
        """Return an endpoint that a payment may buy; raises `NotFound`.

        A reload may have removed it since its quotes, which are honoured.
        """
        found = None if slug in self._switched_off else self._registered.get(slug)
        return found if found is not None and found.is_payable(self._now()) else self[slug]

    def find(self, slug: str) -> Registered | None:
        """Return an endpoint by slug even if it is off sale or removed; None if it is unknown."""
        return self._registered.get(slug)

    def find_endpoint(self, slug: str) -> Endpoint | None:
        """Return an offer as buyers see it; None if it is unknown, switched off or retired."""
        registered = self._registered.get(slug) if self.is_enabled(slug) else None
        return None if registered is None else registered.show(registered.endpoint)

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
        """Return every endpoint, including those switched off, without those that are removed."""
        return [one for one in self._registered.values() if not one.is_removed]

    def offered(self) -> list[Endpoint]:
        """Return every endpoint that is not switched off, including retired ones."""
        return [
            one.endpoint for one in self.everything() if one.endpoint.slug not in self._switched_off
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

    def note_unchecked(self, capability: str, problem: str) -> None:
        """Take the endpoints of a plugin's capability off sale, or back on sale without a problem.

        Endpoints that lack its declaration stay off sale.
        """
        self._unchecked[capability] = problem
        for known in (self._registered, self._configured):
            for slug, one in known.items():
                if one.endpoint.declared is not None and one.endpoint.capability == capability:
                    known[slug] = attrs.evolve(one, unchecked=problem)
        self._cache.clear()

    def runnable_slugs(self) -> list[str]:
        """Return the slug of every registered endpoint whose results this node can check now."""
        return [
            slug
            for slug, one in self._registered.items()
            if not one.unchecked and one.endpoint.capability not in self.unproven
        ]

    def switched_off_slugs(self) -> list[str]:
        """Return the slugs of registered endpoints that the settings of this node switch off."""
        return [slug for slug in self._registered if slug in self._switched_off]

    async def close(self, *, timeout_s: float = CLOSE_S) -> None:
        """Close every provider, each within `timeout_s` seconds."""
        for upstream in (*self.upstreams(), *self.withdrawn):
            await upstream.close(timeout_s=timeout_s)

    def is_enabled(self, slug: str) -> bool:
        """Whether a slug is not switched off and its vendor still serves the model."""
        if slug in self._switched_off:
            return False
        registered = self._registered.get(slug)
        return registered is None or registered.is_offered(self._now())
