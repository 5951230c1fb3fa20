"""Operators' choice of a fallback: the endpoint that makes another one's orders in an outage."""

import contextlib
from collections.abc import Sequence

import attrs

from gateway.catalog.fallbacks import find_misfit
from gateway.catalog.registered import Registered
from gateway.errors import NeedsFresh, WrongValue
from gateway_operator.actions.endpoints import find_endpoint
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.fallbacks import find_doubts
from gateway_operator.desk.wording import sentence
from gateway_operator.sql import fallbacks


@attrs.frozen(kw_only=True)
class FallbackPreview:
    """An endpoint's fallback now, and the endpoints that can be one."""

    registered: Registered
    # As it was chosen, even if it does not fit any more.
    chosen: str | None
    fitting: Sequence[str]
    # Of those, the ones of the same account at the vendor.
    sharing: Sequence[str]


async def preview_fallback(desk: Desk, slug: str) -> FallbackPreview:
    """Return the choices for an endpoint; raises `WrongValue`."""
    await desk.apply_changes()
    registered = find_endpoint(desk, slug)
    fitting = [
        one
        for one in desk.catalog.everything()
        if desk.catalog.is_enabled(one.endpoint.slug)
        and not one.unchecked
        and find_misfit(registered.endpoint, one.endpoint) is None
    ]
    return FallbackPreview(
        registered=registered,
        chosen=await desk.store.sum(fallbacks.newest, slug),
        fitting=[one.endpoint.slug for one in fitting],
        sharing=[one.endpoint.slug for one in fitting if one.upstream is registered.upstream],
    )


async def choose_fallback(
    desk: Desk,
    actor: Actor,
    slug: str,
    fallback: str | None,
    *,
    reason: str = "",
    is_fresh: bool = False,
) -> str:
    """Choose the endpoint that makes the orders while the vendor fails; None: none.

    Orders that exist stay with their maker. Returns a warning, or "". Raises `NeedsFresh`, and
    `WrongValue` for an endpoint that cannot make every order.
    """
    if not is_fresh:
        raise NeedsFresh("This changes which vendor makes what is sold: enter the password.")
    seen: str | None = await desk.store.sum(fallbacks.newest, slug)
    await desk.apply_changes()
    bought, warning = find_endpoint(desk, slug), ""
    if fallback is not None:
        maker = find_endpoint(desk, fallback)
        _check_fits(desk, bought, maker)
        warning = find_doubts(bought, maker)
    action = NewAction(
        actor=actor,
        at=desk.now(),
        action="endpoint.fallback",
        subject=slug,
        reason=reason,
        before={"fallback": seen},
        after={"fallback": fallback},
    )
    # A repeated request gets the current state.
    with contextlib.suppress(AlreadyDone):
        await desk.records.act(fallbacks.insert, slug, fallback, seen, desk.now(), action=action)
    await desk.apply_changes()
    return warning


def _check_fits(desk: Desk, bought: Registered, maker: Registered) -> None:
    slug, fallback = bought.endpoint.slug, maker.endpoint.slug
    if not desk.catalog.is_enabled(fallback):
        raise WrongValue(f"{fallback} is switched off or retired. Choose an endpoint that is sold.")
    if maker.unchecked:
        raise WrongValue(f"{fallback} is off sale: {sentence(maker.unchecked)}")
    if problem := find_misfit(bought.endpoint, maker.endpoint):
        raise WrongValue(f"{fallback} cannot make every order of {slug}: {problem}.")
