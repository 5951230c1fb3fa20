"""What is on sale: slug to endpoint, provider and the plugin they came from."""

import inspect
from collections.abc import Iterator, Mapping

import attrs
import structlog

from gateway.contracts import Provider, Registered
from gateway.domain import Endpoint, usdc
from gateway.errors import NotFound, SettingsError
from gateway.settings import EndpointOverride

_log = structlog.get_logger()


class Catalog:
    """The endpoints, with the operator's changes applied."""

    def __init__(self, overrides: Mapping[str, EndpointOverride]) -> None:
        self._overrides = overrides
        self._registered: dict[str, Registered] = {}

    def register(self, endpoint: Endpoint, provider: Provider, plugin: str) -> None:
        """Put an endpoint on sale unless the operator has switched it off.

        Raises `ValueError` where the slug is taken, naming both plugins.
        """
        taken = self._registered.get(endpoint.slug)
        if taken is not None:
            raise ValueError(
                f"Slug {endpoint.slug!r} is registered by {taken.plugin} and by {plugin}. "
                "Uninstall one of the two."
            )
        changed = _apply(endpoint, self._overrides.get(endpoint.slug, EndpointOverride()))
        self._registered[endpoint.slug] = Registered(changed, provider, plugin)

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
        """Yield the endpoints on sale, in the order of their registration."""
        return (
            registered.endpoint
            for slug, registered in self._registered.items()
            if self.is_enabled(slug)
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def everything(self) -> list[Registered]:
        """Return all that was registered, also what is switched off."""
        return list(self._registered.values())

    async def close(self) -> None:
        """Let every provider that has a `close`, plain or async, end what it keeps open."""
        for provider in {id(one.provider): one.provider for one in self.everything()}.values():
            try:
                closed = getattr(provider, "close", lambda: None)()
                if inspect.isawaitable(closed):
                    await closed
            except Exception:  # noqa: BLE001 - the other providers' turn comes all the same
                _log.exception("provider.close_failed", provider=provider.name)

    def is_enabled(self, slug: str) -> bool:
        """Whether the operator has not switched a slug off."""
        return self._overrides.get(slug, EndpointOverride()).enabled


def _apply(endpoint: Endpoint, override: EndpointOverride) -> Endpoint:
    changes = {
        name: value
        for name in ("title", "description", "model")
        if (value := getattr(override, name)) is not None
    }
    if override.price is None:
        return attrs.evolve(endpoint, **changes)
    try:
        return attrs.evolve(endpoint, price_units=usdc(override.price), **changes)
    except ValueError as error:
        raise SettingsError(f"[endpoints.{endpoint.slug}] price: {error}.") from None
