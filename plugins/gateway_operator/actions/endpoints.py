"""Operators' decisions about endpoints."""

import contextlib
from collections.abc import Mapping, Sequence

import attrs

from gateway.catalog.health import probe_now
from gateway.catalog.pricing import (
    Prices,
    describe_loss,
    more_prices,
    prices_of,
    set_cost,
    set_prices,
)
from gateway.catalog.registered import Registered
from gateway.domain import Endpoint
from gateway.domain.costs import Sale, find_losses, worst_sales
from gateway.errors import ActionRefused, NeedsFresh, StaleForm, WrongValue
from gateway.store.endpoint_changes import write_price
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.sql import overrides
from gateway_operator.sql.overrides import Field

_DAY_S = 86_400
# Between two checks of a vendor at operators' request.
_PROBE_PAUSE_S = 10.0
# A million dollars; more is a typing error.
_MAX_UNITS = 10**12


@attrs.frozen(kw_only=True)
class PausePreview:
    """The effect of a pause, before it is confirmed."""

    registered: Registered

    # Paid tasks queued or running, which a pause does not stop.
    unfinished: int


@attrs.frozen(kw_only=True)
class PricePreview:
    """The effect of a new price, before it is confirmed. Units of 10⁻⁶ USDC."""

    slug: str
    old_units: int
    new_units: int

    file_units: int

    # By resolution or pages, with the names of `more_prices`.
    old_more: Mapping[str, int]
    new_more: Mapping[str, int]

    # 10⁻⁶ US dollars; None: not known.
    cost_micros: int | None

    # None if the cost is not known.
    margin_units: int | None
    losses: Sequence[Sale]

    # Of the last 24 hours.
    sales: int
    sold_units: int

    @property
    def is_below_cost(self) -> bool:
        """Whether any sale costs more than it brings."""
        return bool(self.losses)


def find_endpoint(desk: Desk, slug: str) -> Registered:
    """Return an endpoint, on sale or not; raises `WrongValue`."""
    for registered in desk.catalog.everything():
        if registered.endpoint.slug == slug:
            return registered
    raise WrongValue(f"There is no endpoint {slug!r}; `gateway endpoints` lists them.")


async def preview_pause(desk: Desk, slug: str) -> PausePreview:
    """Return the effect of a pause without pausing. Raises `WrongValue`."""
    registered = await _find_now(desk, slug)
    unfinished: int = await desk.store.sum(overrides.unfinished, slug)
    return PausePreview(registered=registered, unfinished=unfinished)


async def pause(desk: Desk, actor: Actor, slug: str, *, reason: str) -> Registered:
    """Stop selling an endpoint until it is resumed; paid tasks are finished.

    Raises `ActionRefused` if it is already paused, and `WrongValue` without a reason.
    """
    _check_reason(reason)
    refusal, newest = None, await _find_newest(desk, slug, "paused")
    if (await _find_now(desk, slug)).is_paused:
        refusal = ActionRefused(f"{slug} is paused already.")
    return await _override(desk, actor, slug, "paused", "true", reason, newest, refusal)


async def resume(desk: Desk, actor: Actor, slug: str, *, reason: str = "") -> Registered:
    """Sell a paused endpoint again. Raises `ActionRefused` if it is not paused."""
    refusal, newest = None, await _find_newest(desk, slug, "paused")
    if not (await _find_now(desk, slug)).is_paused:
        refusal = ActionRefused(f"{slug} is not paused.")
    return await _override(desk, actor, slug, "paused", None, reason, newest, refusal)


async def preview_price(desk: Desk, slug: str, chosen: Prices | None) -> PricePreview:
    """Return the effect of new prices without changing them; raises `WrongValue`.

    None is the prices of the settings file.
    """
    registered = await _find_now(desk, slug)
    new, old = _priced(desk, slug, chosen), registered.endpoint
    since = desk.now() - _DAY_S
    sales, units = await desk.store.sum(overrides.sold_since, slug, since)
    cost = old.cost_micros
    return PricePreview(
        slug=slug,
        old_units=old.price_units,
        new_units=new.price_units,
        file_units=desk.catalog.configured(slug).price_units,
        old_more=more_prices(old),
        new_more=more_prices(new),
        cost_micros=cost,
        margin_units=None if cost is None else new.price_units - cost,
        losses=_find_losses(new, registered),
        sales=sales,
        sold_units=units,
    )


async def change_price(
    desk: Desk,
    actor: Actor,
    slug: str,
    chosen: Prices | None,
    *,
    seen: Prices,
    reason: str,
    is_fresh: bool = False,
) -> Registered:
    """Change an endpoint's prices; None restores those of the settings file.

    A 402 sent before stays valid for its lifetime. Raises `WrongValue`, and `StaleForm` if the
    prices are no longer `seen`, whose `more` may be empty. A price below the cost raises
    `ActionRefused` unless the settings file allows losses, and then `NeedsFresh`.
    """
    _check_reason(reason)
    newest = await _find_newest(desk, slug, "price")
    registered, new = await _find_now(desk, slug), _priced(desk, slug, chosen)
    refusal, now = None, prices_of(registered.endpoint)
    if now.units != seen.units or (seen.more and now.more != seen.more):
        refusal = StaleForm(
            f"{slug} costs {_write_prices(now)} USDC by now. Nothing was "
            "changed. Check it and try again."
        )
    losses = _find_losses(new, registered)
    if losses and not desk.catalog.allows_loss(slug):
        raise ActionRefused(describe_loss(slug, losses))
    if losses and not is_fresh:
        raise NeedsFresh("This price is below the cost: enter the password again.")
    value = None if chosen is None else write_price(chosen.units, chosen.more)
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
    """Set the cost of one generation; None restores that of the settings file or the adapter.

    It applies to tasks that end from now on, if the vendor reports no cost. Raises `WrongValue`,
    and `NeedsFresh` if the change would open a way around the password for prices below cost.
    """
    if cost_micros is not None and not 0 <= cost_micros < _MAX_UNITS:
        raise WrongValue("A cost is an amount of US dollars from 0 on.")
    newest = await _find_newest(desk, slug, "cost")
    registered = await _find_now(desk, slug)
    if not is_fresh:
        _check_guards_price(desk, registered, cost_micros)
    value = None if cost_micros is None else str(cost_micros)
    return await _override(desk, actor, slug, "cost", value, reason, newest)


async def try_vendor_now(desk: Desk, actor: Actor, slug: str) -> str | None:
    """Check a vendor now, and put the endpoint back on sale if it works.

    Returns the problem, or None. Raises `ActionRefused` within ten seconds of the last check.
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
    """Return an endpoint after applying operators' newest changes, in other processes too."""
    await desk.apply_changes()
    return find_endpoint(desk, slug)


async def _find_newest(desk: Desk, slug: str, field: Field) -> str | None:
    """Return the current override. Read it before any check, to detect a concurrent change."""
    value: str | None = await desk.store.sum(overrides.newest_value, slug, field)
    return value


def _write_prices(prices: Prices) -> str:
    return " / ".join(f"{units / 10**6:g}" for units in (prices.units, *prices.more.values()))


def _priced(desk: Desk, slug: str, chosen: Prices | None) -> Endpoint:
    """Return the settings file's endpoint at other prices; raises `WrongValue`."""
    configured = desk.catalog.configured(slug)
    if chosen is None:
        return configured
    known = more_prices(configured)
    if unknown := [name for name in chosen.more if name not in known]:
        names = ", ".join(known) or "none"
        raise WrongValue(f"{slug} has no price for {unknown[0]!r}. Its other prices are: {names}.")
    if not all(0 < units < _MAX_UNITS for units in (chosen.units, *chosen.more.values())):
        raise WrongValue("A price is a positive amount of USDC.")
    return set_prices(configured, chosen)


def _find_losses(priced: Endpoint, registered: Registered) -> list[Sale]:
    """Return the sales below cost, by the cost that operators set, else the adapter's."""
    change = registered.change
    if change is not None and change.cost_micros is not None:
        priced = set_cost(priced, change.cost_micros)
    return find_losses(priced)


def _check_guards_price(desk: Desk, registered: Registered, cost_micros: int | None) -> None:
    """Raise `NeedsFresh` if this cost lets two changes end in a price below the real cost.

    Either the cost is lowered or removed, so that a lower price could follow. Or it exceeds a price
    that an operator has chosen.
    """
    before, change = registered.endpoint, registered.change
    price_units = change.price_units if change is not None else None
    after = desk.catalog.configured(before.slug)
    if change is not None and price_units is not None:
        after = set_prices(after, Prices(price_units, change.more_units))
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
    """Write an override with its audit row, and apply it in this process.

    `seen` is the newest override from before the checks. Raises `refusal` unless the request is a
    repeat.
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
    # A repeated request gets the current state.
    with contextlib.suppress(AlreadyDone):
        await desk.records.act(
            overrides.insert, slug, field, value, seen, desk.now(), refusal, action=action
        )
    return await _find_now(desk, slug)
