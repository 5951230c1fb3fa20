"""Applies the operator's settings and live changes to an endpoint's prices and costs."""

from collections.abc import Callable, Mapping, Sequence

import attrs
import structlog

from gateway.contracts.store import EarlierPrice, EndpointChange
from gateway.domain import Endpoint, PriceStep, UnitPrice, dollars, usdc
from gateway.domain.costs import Sale, find_losses
from gateway.errors import SettingsError
from gateway.settings import EndpointOverride

_EACH_PAGE = "each page"
_log = structlog.get_logger()


@attrs.frozen
class Prices:
    """An endpoint's price, and those by resolution or pages, in units."""

    units: int
    # By the names of `more_prices`. Prices that are not here follow `units`.
    more: Mapping[str, int] = attrs.field(factory=dict)


def prices_of(endpoint: Endpoint) -> Prices:
    """Return all prices of an endpoint."""
    return Prices(endpoint.price_units, more_prices(endpoint))


def apply_override(endpoint: Endpoint, override: EndpointOverride) -> Endpoint:
    """Apply the settings table `[endpoints.<slug>]` to an endpoint.

    A changed `price` scales every other price; `prices` sets steps by resolution. Raises
    `SettingsError` for an invalid price or resolution.
    """
    texts = {name: getattr(override, name) for name in ("title", "description", "model")}
    given = {name: text for name, text in texts.items() if text is not None}
    changed = attrs.evolve(endpoint, **given)
    if changed.model != endpoint.model:
        # The known retirement date is that of the old model.
        changed = attrs.evolve(changed, retires=None)
    if override.price is not None:
        changed = scale_prices(changed, _read_units(endpoint.slug, "price", override.price))
    for resolution, price in override.prices.items():
        units = _read_units(endpoint.slug, f"prices.{resolution}", price)
        changed = _set_price_step(changed, resolution, units)
    if override.cost is not None:
        changed = set_cost(changed, _read_units(endpoint.slug, "cost", override.cost, dollars))
    return changed


def apply_change(endpoint: Endpoint, change: EndpointChange) -> Endpoint:
    """Apply an operator's live change of price and cost.

    A new price scales every price step, as in the settings file, except those that were set apart.
    """
    priced = at_price(endpoint, change)
    return priced if change.cost_micros is None else set_cost(priced, change.cost_micros)


def at_price(endpoint: Endpoint, chosen: EndpointChange | EarlierPrice) -> Endpoint:
    """Return an endpoint at the prices of a live change."""
    if chosen.price_units is None:
        return endpoint
    return set_prices(endpoint, Prices(chosen.price_units, chosen.more_units))


def check_losses(endpoint: Endpoint, *, is_allowed: bool) -> None:
    """Raise `SettingsError` if an endpoint is sold below cost; if that is allowed, log it."""
    losses = find_losses(endpoint)
    if not losses:
        return
    if not is_allowed:
        raise SettingsError(describe_loss(endpoint.slug, losses))
    _log.warning("endpoint.below_cost", slug=endpoint.slug, sold=str(losses[0]))


def describe_loss(slug: str, losses: Sequence[Sale]) -> str:
    """Describe sales below cost, and how to fix them."""
    more = f"; and {len(losses) - 1} more" if len(losses) > 1 else ""
    return (
        f"{slug} would be sold below its cost ({losses[0]}{more}). Raise the "
        f'price, correct the cost ([endpoints.{slug}] cost = "..."), or write allow_loss = true '
        f"into [endpoints.{slug}]."
    )


def set_cost(endpoint: Endpoint, cost_micros: int) -> Endpoint:
    """Set an endpoint's cost, and scale its steps' costs in proportion.

    If the cost was unknown before, all steps cost the same.
    """
    before = endpoint.cost_micros
    steps = tuple(
        attrs.evolve(
            step,
            cost_micros=-(-step.cost_micros * cost_micros // before)
            if before and step.cost_micros is not None
            else None,
        )
        for step in endpoint.price_steps
    )
    unit_price = endpoint.unit_price
    if unit_price is not None:
        unit_price = attrs.evolve(unit_price, cost_micros=None)
    return attrs.evolve(
        endpoint,
        cost_micros=cost_micros,
        price_steps=steps,
        page_cost_micros=None,
        unit_price=unit_price,
        cost_checked=None,
    )


def scale_prices(endpoint: Endpoint, price_units: int) -> Endpoint:
    """Set an endpoint's price, and scale its other prices in proportion, rounded up."""
    steps = tuple(
        attrs.evolve(step, price_units=-(-step.price_units * price_units // endpoint.price_units))
        for step in endpoint.price_steps
    )
    per_page = endpoint.price_per_page
    if per_page is not None:
        per_page = -(-per_page * price_units // endpoint.price_units)
    unit_price = endpoint.unit_price
    if unit_price is not None:
        each = -(-unit_price.price_units * price_units // endpoint.price_units)
        unit_price = attrs.evolve(unit_price, price_units=each)
    return attrs.evolve(
        endpoint,
        price_units=price_units,
        price_steps=steps,
        price_per_page=per_page,
        unit_price=unit_price,
    )


def more_prices(endpoint: Endpoint) -> dict[str, int]:
    """Return an endpoint's prices beside `price_units`, by names such as `2K` and `6 pages`."""
    prices = {_name_of(step): step.price_units for step in endpoint.price_steps}
    if endpoint.price_per_page is not None:
        prices[_EACH_PAGE] = endpoint.price_per_page
    if endpoint.unit_price is not None:
        prices[_each(endpoint.unit_price)] = endpoint.unit_price.price_units
    return prices


def set_prices(endpoint: Endpoint, chosen: Prices) -> Endpoint:
    """Scale all prices to `chosen.units`, except those in `chosen.more`.

    Unknown names are ignored: the plugin may have other steps by now.
    """
    scaled = scale_prices(endpoint, chosen.units)
    steps = tuple(
        attrs.evolve(step, price_units=chosen.more.get(_name_of(step), step.price_units))
        for step in scaled.price_steps
    )
    per_page = scaled.price_per_page
    if per_page is not None:
        per_page = chosen.more.get(_EACH_PAGE, per_page)
    by_unit = scaled.unit_price
    if by_unit is not None:
        units = chosen.more.get(_each(by_unit), by_unit.price_units)
        by_unit = attrs.evolve(by_unit, price_units=units)
    return attrs.evolve(scaled, price_steps=steps, price_per_page=per_page, unit_price=by_unit)


def _each(price: UnitPrice) -> str:
    return f"each {price.unit.name}"


def _name_of(step: PriceStep) -> str:
    pages = f"{step.min_pages} pages" if step.min_pages is not None else None
    return " ".join(text for text in (step.resolution, pages) if text)


def _set_price_step(endpoint: Endpoint, resolution: str, price_units: int) -> Endpoint:
    setting = f"[endpoints.{endpoint.slug}] prices.{resolution}"
    if resolution not in endpoint.resolution.values:
        known = ", ".join(endpoint.resolution.values) or "none"
        raise SettingsError(f"{setting}: the endpoint's resolutions are {known}.")
    # The manifest shows `price_units` as the price of the default resolution.
    if resolution == endpoint.resolution.default:
        raise SettingsError(
            f"{setting}: this is the resolution of a request that names none. "
            'Write price = "..." instead.'
        )
    others = tuple(step for step in endpoint.price_steps if step.resolution != resolution)
    old = [step.cost_micros for step in endpoint.price_steps if step.resolution == resolution]
    step = PriceStep(
        price_units=price_units, resolution=resolution, cost_micros=old[-1] if old else None
    )
    return attrs.evolve(endpoint, price_steps=(*others, step))


def _read_units(slug: str, name: str, amount: str, parse: Callable[[str], int] = usdc) -> int:
    """Parse an amount into units of 10⁻⁶; raises a `SettingsError` that names the setting."""
    try:
        return parse(amount)
    except ValueError as error:
        raise SettingsError(f"[endpoints.{slug}] {name}: {error}.") from None
