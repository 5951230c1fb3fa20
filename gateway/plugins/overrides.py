"""What the operator changes about an endpoint in the table `[endpoints.<slug>]`."""

import attrs

from gateway.domain import Endpoint, PriceStep, usdc
from gateway.errors import SettingsError
from gateway.settings import EndpointOverride


def overridden(endpoint: Endpoint, override: EndpointOverride) -> Endpoint:
    """Return an endpoint as the operator wants it.

    Another price raises or lowers every step by the same factor; `prices` names steps by their
    resolution. Raises `SettingsError` for a price or a resolution that cannot be right.
    """
    changes = {
        name: value
        for name in ("title", "description", "model")
        if (value := getattr(override, name)) is not None
    }
    changed = attrs.evolve(endpoint, **changes)
    if override.price is not None:
        changed = _scaled(changed, _units(endpoint.slug, "price", override.price))
    for resolution, price in override.prices.items():
        units = _units(endpoint.slug, f"prices.{resolution}", price)
        changed = _with_step(changed, resolution, units)
    return changed


def _scaled(endpoint: Endpoint, price_units: int) -> Endpoint:
    """Return an endpoint at another price, its steps in proportion, rounded up."""
    steps = tuple(
        attrs.evolve(step, price_units=-(-step.price_units * price_units // endpoint.price_units))
        for step in endpoint.price_steps
    )
    return attrs.evolve(endpoint, price_units=price_units, price_steps=steps)


def _with_step(endpoint: Endpoint, resolution: str, price_units: int) -> Endpoint:
    """Return an endpoint with another price for one resolution."""
    if resolution not in endpoint.resolution.values:
        known = ", ".join(endpoint.resolution.values) or "none"
        raise SettingsError(
            f"[endpoints.{endpoint.slug}] prices.{resolution}: the endpoint's resolutions are "
            f"{known}."
        )
    if resolution == endpoint.resolution.default:  # else the manifest would name another
        raise SettingsError(
            f"[endpoints.{endpoint.slug}] prices.{resolution}: that is made where a request names "
            f'no resolution. Write price = "..." instead.'
        )
    others = tuple(step for step in endpoint.price_steps if step.resolution != resolution)
    step = PriceStep(price_units=price_units, resolution=resolution)
    return attrs.evolve(endpoint, price_steps=(*others, step))


def _units(slug: str, name: str, amount: str) -> int:
    try:
        return usdc(amount)
    except ValueError as error:
        raise SettingsError(f"[endpoints.{slug}] {name}: {error}.") from None
