"""The page Alarms: list and mute."""

import secrets

from quart import Response, g, redirect
from werkzeug.wrappers import Response as Redirect

from gateway_operator.alarms import service
from gateway_operator.alarms.durations import parse_length
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, needs_session
from gateway_operator.state import operator

# The form's choices.
LENGTHS = (("1h", "1 hour"), ("1d", "1 day"), ("ends", "until it ends"))


@blueprint.get("/admin/alarms")
@needs_session
async def show_alarms() -> Response:
    """Show all alarms."""
    return await render(
        "alarms.html",
        page="system",
        alarms=await service.current(operator().desk),
        watch=operator().alarms,
        lengths=LENGTHS,
        until_it_ends=service.UNTIL_IT_ENDS,
        new_request=lambda: secrets.token_hex(8),
    )


@blueprint.post("/admin/alarms/mute")
@needs_session
async def mute_alarm() -> Redirect:
    """Mute or unmute an alarm."""
    form = g.form
    await service.mute(
        operator().desk,
        actor(),
        form.get("key", ""),
        for_s=parse_length(form.get("length", "")),
        reason=form.get("reason", ""),
    )
    return redirect("/admin/alarms", 303)
