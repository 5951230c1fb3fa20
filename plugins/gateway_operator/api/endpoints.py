"""Endpoints: list, pause, price, cost, check."""

from collections.abc import Mapping
from typing import Any

from quart import Response, request

from gateway.catalog.pricing import Prices, more_prices
from gateway.catalog.registered import Registered
from gateway.errors import ValidationError
from gateway_operator.actions import endpoints
from gateway_operator.api.frame import API, answer, read_body, text_of, whole_of
from gateway_operator.desk.endpoints import read_endpoints
from gateway_operator.desk.overview import DEFAULT_PERIOD
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import actor, is_fresh, needs_scope
from gateway_operator.state import operator

_ENDPOINT = f"{API}/endpoints/<slug>"


@blueprint.get(f"{API}/endpoints")
@needs_scope("read")
async def api_endpoints() -> Response:
    """Return each endpoint with its sales in the period `range`."""
    return answer(await read_endpoints(operator().desk, request.args.get("range", DEFAULT_PERIOD)))


@blueprint.post(f"{_ENDPOINT}/pause")
@needs_scope("act")
async def api_pause(slug: str) -> Response:
    """Stop selling an endpoint until it is resumed."""
    reason = text_of(await read_body("reason", needed=["reason"]), "reason")
    return _answer(await endpoints.pause(operator().desk, actor(), slug, reason=reason))


@blueprint.post(f"{_ENDPOINT}/resume")
@needs_scope("act")
async def api_resume(slug: str) -> Response:
    """Sell a paused endpoint again."""
    reason = text_of(await read_body("reason"), "reason")
    return _answer(await endpoints.resume(operator().desk, actor(), slug, reason=reason))


@blueprint.post(f"{_ENDPOINT}/price")
@needs_scope("act")
async def api_price(slug: str) -> Response:
    """Change the price; without `priceUnits`, restore that of the settings file.

    `moreUnits` are prices by resolution or pages, by name; the others follow the price.
    """
    body = await read_body(
        "priceUnits", "moreUnits", "seenUnits", "reason", needed=["seenUnits", "reason"]
    )
    seen_units = whole_of(body, "seenUnits")
    if seen_units is None:
        raise ValidationError("seenUnits is missing.")
    changed = await endpoints.change_price(
        operator().desk,
        actor(),
        slug,
        _prices_of(body),
        seen=Prices(seen_units),
        reason=text_of(body, "reason"),
        is_fresh=is_fresh(),
    )
    return _answer(changed)


@blueprint.post(f"{_ENDPOINT}/cost")
@needs_scope("act")
async def api_cost(slug: str) -> Response:
    """Set the cost of one generation; without `costMicros`, restore that of the settings."""
    body = await read_body("costMicros", "reason")
    micros, reason = whole_of(body, "costMicros"), text_of(body, "reason")
    changed = await endpoints.change_cost(
        operator().desk, actor(), slug, micros, reason=reason, is_fresh=is_fresh()
    )
    return _answer(changed)


@blueprint.post(f"{_ENDPOINT}/try")
@needs_scope("act")
async def api_try_vendor(slug: str) -> Response:
    """Check the vendor now, and put the endpoint back on sale if it works."""
    await read_body()
    problem = await endpoints.try_vendor_now(operator().desk, actor(), slug)
    return answer({"works": problem is None, "problem": problem})


def _prices_of(body: Mapping[str, Any]) -> Prices | None:
    """Return `priceUnits` with the object `moreUnits`, or None; raises `ValidationError`."""
    units, more = whole_of(body, "priceUnits"), body.get("moreUnits") or {}
    if not isinstance(more, dict):
        raise ValidationError("moreUnits must be an object of prices in units.")
    if units is None and more:
        raise ValidationError("moreUnits needs priceUnits.")
    found = {str(name): whole_of(more, name) for name in more}
    if units is None:
        return None
    return Prices(units, {name: value for name, value in found.items() if value is not None})


def _answer(registered: Registered) -> Response:
    return answer({"endpoint": row_of(registered)})


def row_of(registered: Registered) -> dict[str, Any]:
    """Return an endpoint as JSON."""
    endpoint, change = registered.endpoint, registered.change
    return {
        "slug": endpoint.slug,
        "sells": registered.sells_now,
        "isPaused": registered.is_paused,
        "fallback": change.fallback if change is not None else None,
        "pauseReason": change.pause_reason if change is not None else None,
        "priceUnits": endpoint.price_units,
        "moreUnits": more_prices(endpoint),
        "costMicros": endpoint.cost_micros,
        "isCostSet": registered.is_cost_set,
    }
