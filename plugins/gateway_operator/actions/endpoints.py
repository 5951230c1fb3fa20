"""What an operator decides about endpoints: pause, price, cost, and a look at the vendor."""

import contextlib
from collections.abc import Sequence

import attrs

from gateway.catalog.catalog import Registered
from gateway.catalog.health import probe_now
from gateway.catalog.pricing import describe_loss, scale_prices, set_cost
from gateway.domain import Endpoint, PriceStep
from gateway.domain.costs import Sale, find_losses, worst_sales
from gateway.errors import ActionRefused, NeedsFresh, StaleForm, WrongValue
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.sql import overrides
from gateway_operator.sql.overrides import Field

_DAY_S = 86_400
# Between two looks at one vendor that operators ask for.
_PROBE_PAUSE_S = 10.0
# A million dollars: more is a mistake of the keyboard.
_MOST_UNITS = 10**12


@attrs.frozen(kw_only=True)
class PausePreview:
    """What a pause would stop, and what it would not."""

    registered: Registered

    # Paid tasks that wait or run: they are finished.
    unfinished: int


@attrs.frozen(kw_only=True)
class PricePreview:
    """What a change of price would do, for the page that asks once more. Units of 10⁻⁶ USDC."""

    slug: str
    old_units: int
    new_units: int

    # What the settings file says.
    file_units: int

    # The prices by resolution or pages, which rise and fall by the same factor.
    old_steps: Sequence[PriceStep]
    new_steps: Sequence[PriceStep]

    # 10⁻⁶ US dollars; None: not known.
    cost_micros: int | None

    # What is left of one sale; None where the cost is not known.
    margin_units: int | None
    is_below_cost: bool

    # In the last 24 hours.
    sales: int
    sold_units: int


def find_endpoint(desk: Desk, slug: str) -> Registered:
    """Return an endpoint, one that does not sell included; raises `WrongValue`."""
    for registered in desk.catalog.everything():
        if registered.endpoint.slug == slug:
            return registered
    raise WrongValue(f"There is no endpoint {slug!r}; `gateway endpoints` lists them.")


async def preview_pause(desk: Desk, slug: str) -> PausePreview:
    """Return what a pause would do; writes nothing. Raises `WrongValue`."""
    registered = await _find_now(desk, slug)
    unfinished: int = await desk.store.sum(overrides.unfinished, slug)
    return PausePreview(registered=registered, unfinished=unfinished)


async def pause(desk: Desk, actor: Actor, slug: str, *, reason: str) -> Registered:
    """Sell an endpoint no more until it is resumed; what was paid for is finished.

    Raises `ActionRefused` where it is paused already, and `WrongValue` without a reason.
    """
    _check_reason(reason)
    refusal, newest = None, await _find_newest(desk, slug, "paused")
    if (await _find_now(desk, slug)).is_paused:
        refusal = ActionRefused(f"{slug} is paused already.")
    return await _override(desk, actor, slug, "paused", "true", reason, newest, refusal)


async def resume(desk: Desk, actor: Actor, slug: str, *, reason: str = "") -> Registered:
    """Sell a paused endpoint again. Raises `ActionRefused` where it is not paused."""
    refusal, newest = None, await _find_newest(desk, slug, "paused")
    if not (await _find_now(desk, slug)).is_paused:
        refusal = ActionRefused(f"{slug} is not paused.")
    return await _override(desk, actor, slug, "paused", None, reason, newest, refusal)


async def preview_price(desk: Desk, slug: str, price_units: int | None) -> PricePreview:
    """Return what another price would do; None is the price of the settings file.

    Raises `WrongValue`.
    """
    registered = await _find_now(desk, slug)
    new, old = _priced(desk, slug, price_units), registered.endpoint
    since = desk.now() - _DAY_S
    sales, units = await desk.store.sum(overrides.sold_since, slug, since)
    cost = old.cost_micros
    return PricePreview(
        slug=slug,
        old_units=old.price_units,
        new_units=new.price_units,
        file_units=desk.catalog.filed(slug).price_units,
        old_steps=old.price_steps,
        new_steps=new.price_steps,
        cost_micros=cost,
        margin_units=None if cost is None else new.price_units - cost,
        is_below_cost=bool(_find_losses(new, registered)),
        sales=sales,
        sold_units=units,
    )


async def change_price(
    desk: Desk,
    actor: Actor,
    slug: str,
    price_units: int | None,
    *,
    seen_units: int,
    reason: str,
    is_fresh: bool = False,
) -> Registered:
    """Sell an endpoint at another price; None goes back to the settings file.

    Prices by resolution or pages change by the same factor. A 402 that was given before stays good
    for its lifetime. Raises `StaleForm` where the price is not `seen_units` any more, `WrongValue`,
    `ActionRefused` for a price below the cost unless the settings file allows losses, and then
    `NeedsFresh`.
    """
    _check_reason(reason)
    newest = await _find_newest(desk, slug, "price")
    registered, new = await _find_now(desk, slug), _priced(desk, slug, price_units)
    refusal = None
    if registered.endpoint.price_units != seen_units:
        refusal = StaleForm(
            f"{slug} costs {registered.endpoint.price_units / 10**6:g} USDC by now. Nothing was "
            "changed; look at it again."
        )
    losses = _find_losses(new, registered)
    if losses and not desk.catalog.allows_loss(slug):
        raise ActionRefused(describe_loss(slug, losses))
    if losses and not is_fresh:
        raise NeedsFresh("This price is below the cost: enter the password again.")
    value = None if price_units is None else str(price_units)
    return await _override(desk, actor, slug, "price", value, reason, newest, refusal)


async def change_cost(
    desk: Desk,
    actor: Actor,
    slug: str,
    cost_micros: int | None,
    *,
    reason: str = "",
    is_fresh: bool = False,
) -> Registered:
    """Say what one generation costs; None goes back to the settings file, or to the adapter.

    It counts for tasks that end from now on, and only where the vendor names no cost. Raises
    `WrongValue`, and `NeedsFresh` for a change that a price below the cost would need the password
    for.
    """
    if cost_micros is not None and not 0 <= cost_micros < _MOST_UNITS:
        raise WrongValue("A cost is an amount of US dollars from 0 on.")
    newest = await _find_newest(desk, slug, "cost")
    registered = await _find_now(desk, slug)
    if not is_fresh:
        _check_guards_price(desk, registered, cost_micros)
    value = None if cost_micros is None else str(cost_micros)
    return await _override(desk, actor, slug, "cost", value, reason, newest)


async def try_vendor_now(desk: Desk, actor: Actor, slug: str) -> str | None:
    """Ask the vendor of an endpoint whether it works, and sell again if it does.

    Returns what is wrong, or None. Raises `ActionRefused` within ten seconds of the last look.
    """
    registered = find_endpoint(desk, slug)
    upstream = registered.upstream
    waited_s = desk.now() - upstream.tried_at
    if 0 <= waited_s < _PROBE_PAUSE_S:
        raise ActionRefused(
            f"The vendor was asked a moment ago. Try again in {_PROBE_PAUSE_S - waited_s:.0f} s."
        )
    upstream.tried_at = desk.now()
    problem = await probe_now(registered)
    await desk.records.note(
        NewAction(
            actor=actor, at=desk.now(), action="vendor.try", subject=slug, after={"found": problem}
        )
    )
    return problem


async def _find_now(desk: Desk, slug: str) -> Registered:
    """Return an endpoint with what other operators have changed meanwhile."""
    await desk.look_at_changes()
    return find_endpoint(desk, slug)


async def _find_newest(desk: Desk, slug: str, field: Field) -> str | None:
    """Return an override as it is now; read it first, so that a later change is noticed."""
    value: str | None = await desk.store.sum(overrides.newest_value, slug, field)
    return value


def _priced(desk: Desk, slug: str, price_units: int | None) -> Endpoint:
    """Return the endpoint of the settings file at another price; raises `WrongValue`."""
    filed = desk.catalog.filed(slug)
    if price_units is None:
        return filed
    if not 0 < price_units < _MOST_UNITS:
        raise WrongValue("A price is a positive amount of USDC.")
    return scale_prices(filed, price_units)


def _find_losses(priced: Endpoint, registered: Registered) -> list[Sale]:
    """Return what would be sold below the cost that operators have set, or else the adapter's."""
    change = registered.change
    if change is not None and change.cost_micros is not None:
        priced = set_cost(priced, change.cost_micros)
    return find_losses(priced)


def _check_guards_price(desk: Desk, registered: Registered, cost_micros: int | None) -> None:
    """Raise `NeedsFresh` for a cost with which two changes would end in a price below the cost.

    The first is a lower cost, or an unknown one: a lower price could follow. The second is a cost
    above a price that an operator has chosen.
    """
    before, change = registered.endpoint, registered.change
    price_units = change.price_units if change is not None else None
    after = _priced(desk, before.slug, price_units)
    if cost_micros is not None:
        after = set_cost(after, cost_micros)
    pairs = zip(worst_sales(before), worst_sales(after), strict=True)
    if any(_is_lower(new.cost_micros, old.cost_micros) for old, new in pairs):
        raise NeedsFresh("This lowers the cost, which no price may be below: enter the password.")
    if price_units is not None and find_losses(after):
        raise NeedsFresh("The price is below this cost: enter the password, or raise it first.")


def _is_lower(new: int | None, old: int | None) -> bool:
    return old is not None and (new is None or new < old)


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise WrongValue("Give a reason: only the audit log shows it.")


_VERBS = {"paused": "pause", "price": "price", "cost": "cost"}


async def _override(
    desk: Desk,
    actor: Actor,
    slug: str,
    field: Field,
    value: str | None,
    reason: str,
    seen: str | None,
    refusal: ActionRefused | None = None,
) -> Registered:
    """Write an override with its audit row, and apply it here at once.

    `seen` is the newest override of the field as it was before the endpoint was checked. The
    refusal is raised unless the request was carried out before.
    """
    verb = "resume" if field == "paused" and value is None else _VERBS[field]
    action = NewAction(
        actor=actor,
        at=desk.now(),
        action=f"endpoint.{verb}",
        subject=slug,
        reason=reason,
        before={field: seen},
        after={field: value},
    )
    # A repeated request has been carried out: the endpoint is as it left it, or as others have.
    with contextlib.suppress(AlreadyDone):
        await desk.records.act(
            overrides.insert, slug, field, value, seen, desk.now(), refusal, action=action
        )
    return await _find_now(desk, slug)
