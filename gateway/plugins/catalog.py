"""What is on sale: slug to endpoint, provider and the plugin they came from."""

import time
from collections.abc import Iterator, Mapping

import attrs

from gateway.contracts import Clock, Provider
from gateway.domain import Endpoint
from gateway.errors import NotFound, SettingsError
from gateway.plugins.overrides import overridden
from gateway.plugins.upstream import Upstream
from gateway.redaction import Redactor
from gateway.settings import EndpointOverride


@attrs.frozen
class Registered:
    """An endpoint, with who generates for it."""

    endpoint: Endpoint
    upstream: Upstream


class Catalog:
    """The endpoints, with the operator's changes applied."""

    def __init__(
        self,
        overrides: Mapping[str, EndpointOverride],
        *,
        now: Clock = time.time,
        places: int = 4,
        redactor: Redactor | None = None,
    ) -> None:
        self._overrides = overrides
        self._now = now
        self._places = places  # generations at once by a provider that names no number
        self._redactor = redactor
        self._registered: dict[str, Registered] = {}
        self._upstreams: dict[int, Upstream] = {}

    def register(self, endpoint: Endpoint, provider: Provider, plugin: str) -> None:
        """Put an endpoint on sale unless the operator has switched it off.

        Raises `ValueError` where the slug is taken, naming both plugins.
        """
        taken = self._registered.get(endpoint.slug)
        if taken is not None:
            raise ValueError(
                f"Slug {endpoint.slug!r} is registered by {taken.upstream.plugin} and by {plugin}. "
                "Uninstall one of the two."
            )
        changed = overridden(endpoint, self._overrides.get(endpoint.slug, EndpointOverride()))
        upstream = self._upstreams.setdefault(
            id(provider),
            Upstream.of(
                provider, plugin, now=self._now, places=self._places, redactor=self._redactor
            ),
        )
        self._registered[endpoint.slug] = Registered(changed, upstream)

    def withdraw(self, plugin: str) -> None:
        """Take everything of a plugin away: one that is left out sells nothing."""
        self._registered = {
            slug: one for slug, one in self._registered.items() if one.upstream.plugin != plugin
        }

    def rest(self, plugin: str, reason: str, *, pause_s: float) -> None:
        """Take everything of a plugin off sale for a while; its probe brings it back."""
        for upstream in self._upstreams.values():
            if upstream.plugin == plugin:
                upstream.circuit.trip(reason, pause_s=pause_s)

    def check_overrides(self) -> None:
        """Raise `SettingsError` for a table `[endpoints.<slug>]` that no endpoint answers to."""
        for slug in self._overrides:
            if slug not in self._registered:
                known = ", ".join(sorted(self._registered)) or "none"
                raise SettingsError(f"[endpoints.{slug}] names no endpoint. Known are: {known}.")

    def __getitem__(self, slug: str) -> Registered:
        """Return what is on sale under a slug; raises `NotFound`."""
        registered = self._registered.get(slug)
        if registered is None or not self.is_enabled(slug):
            raise NotFound("No such endpoint. GET /.well-known/agent-manifest.json lists them.")
        return registered

    def __iter__(self) -> Iterator[Endpoint]:
        """Yield what can be bought now, in the order of registration."""
        return (
            registered.endpoint
            for slug, registered in self._registered.items()
            if self.is_enabled(slug) and not registered.upstream.circuit.is_open
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def everything(self) -> list[Registered]:
        """Return all that was registered, also what is switched off."""
        return list(self._registered.values())

    def upstreams(self) -> list[Upstream]:
        """Return every provider, also of endpoints that are switched off."""
        return list(self._upstreams.values())

    def on_sale(self) -> list[Upstream]:
        """Return every provider of an endpoint that the operator has not switched off."""
        found = {
            id(one.upstream): one.upstream
            for slug, one in self._registered.items()
            if self.is_enabled(slug)
        }
        return list(found.values())

    def resting(self, patience_s: float) -> list[str]:
        """Return the slugs of which no task should be begun now.

        One whose provider has been off sale for longer than `patience_s` is none of them: a buyer
        is told so rather than kept waiting.
        """
        return [
            slug
            for slug, one in self._registered.items()
            if one.upstream.wait_s > 0 and one.upstream.circuit.open_s <= patience_s
        ]

    async def close(self) -> None:
        """Let every provider that has a `close` end what it keeps open."""
        for upstream in self.upstreams():
            await upstream.close()

    def is_enabled(self, slug: str) -> bool:
        """Whether the operator has not switched a slug off."""
        return self._overrides.get(slug, EndpointOverride()).enabled
