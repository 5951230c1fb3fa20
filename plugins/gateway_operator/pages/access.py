"""The page Access: sessions, codes, passkeys, tokens and refused logins."""

import secrets
from http import HTTPStatus

import attrs
from quart import Response, g, redirect, request
from werkzeug.wrappers import Response as Redirect

from gateway.errors import WrongValue
from gateway_operator.audit_log import Actor
from gateway_operator.desk import codes, passkeys, sessions, tokens
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import (
    actor,
    current_session,
    is_fresh,
    needs_fresh,
    needs_session,
)
from gateway_operator.pages.page import Ask, answer_dialog
from gateway_operator.pages.passwords import password_fingerprint
from gateway_operator.state import operator

_PAGE = "/admin/access"


@blueprint.get(_PAGE)
@needs_session
async def show_access() -> Response:
    """Show the page."""
    return await _render_access()


async def _render_access(new_token: tokens.NewToken | None = None) -> Response:
    desk = operator().desk
    return await render(
        "access.html",
        page="system",
        now=desk.now(),
        is_fresh=is_fresh(),
        current=current_session(),
        sessions=await sessions.list_sessions(desk, await password_fingerprint()),
        codes_are_on=await codes.are_on(desk),
        # With a stolen session, an attacker could read the secret and wait until it is confirmed.
        set_up=await codes.read_set_up(desk) if is_fresh() else None,
        passkeys=await passkeys.list_passkeys(desk),
        passkeys_are_installed=passkeys.are_installed(),
        how_to_install=passkeys.HOW_TO_INSTALL,
        tokens=await tokens.list_tokens(desk),
        new_token=new_token,
        token_days=tokens.DAYS,
        most_token_days=tokens.MAX_DAYS,
        refused=await sessions.list_refused(desk),
    )


@blueprint.get(f"{_PAGE}/mine")
@needs_session
async def ask_about_login() -> Response:
    """Show the dialog about a login from an unknown browser; its condition links to it."""
    login = await sessions.find_login(operator().desk, request.args.get("login", ""))
    device = login.after.get("device", "unknown") if isinstance(login.after, dict) else "unknown"
    ask = Ask(
        title="Was this login yours?",
        action=f"{_PAGE}/mine",
        back=_PAGE,
        button="It was me",
        intro="Its notice ends. If it was not you, go back, end the session, change the password.",
        facts=[("From", login.actor.address or "unknown"), ("Browser", str(device))],
        fields={"login": str(login.id), "request": secrets.token_urlsafe(12)},
    )
    return await answer_dialog(ask, page="system")


@blueprint.post(f"{_PAGE}/mine")
@needs_session
async def own_login() -> Redirect:
    """Record that a login was the operator's own."""
    desk = operator().desk
    login = await sessions.find_login(desk, g.form.get("login", ""))
    await sessions.own_login(desk, actor(), login)
    return redirect("/admin", HTTPStatus.SEE_OTHER)


@blueprint.post(f"{_PAGE}/sessions/end")
@needs_fresh
async def end_session() -> Redirect:
    """End one session, or all others."""
    desk, fingerprint = operator().desk, await password_fingerprint()
    if g.form.get("which") == "others":
        for session in await sessions.list_sessions(desk, fingerprint):
            if session.id != current_session().id:
                await sessions.end_session(desk, _actor_without_key(), session)
    else:
        found = await sessions.find_listed(desk, g.form.get("session", ""), fingerprint)
        await sessions.end_session(desk, actor(), found)
    return _back()


@blueprint.post(f"{_PAGE}/codes/begin")
@needs_fresh
async def begin_codes() -> Redirect:
    """Create a secret for codes; the page shows it until the first code confirms it."""
    await codes.begin(operator().desk, actor())
    return _back()


@blueprint.post(f"{_PAGE}/codes/confirm")
@needs_fresh
async def confirm_codes() -> Redirect:
    """Turn codes on with the first code."""
    await codes.confirm(operator().desk, actor(), g.form.get("first_code", ""))
    return _back()


@blueprint.post(f"{_PAGE}/codes/off")
@needs_fresh
async def switch_codes_off() -> Redirect:
    """Turn codes off."""
    await codes.switch_off(operator().desk, actor())
    return _back()


@blueprint.post(f"{_PAGE}/passkeys/remove")
@needs_fresh
async def remove_passkey() -> Redirect:
    """Delete a passkey."""
    await passkeys.remove_passkey(operator().desk, actor(), g.form.get("passkey", ""))
    return _back()


@blueprint.post(f"{_PAGE}/tokens")
@needs_fresh
async def make_token() -> Response:
    """Create a token, and show it once."""
    form, desk = g.form, operator().desk
    days = form.get("days", str(tokens.DAYS))
    if not days.isascii() or not days.isdigit() or len(days) > len(str(tokens.MAX_DAYS)):
        raise WrongValue(f"A token is valid for 1 to {tokens.MAX_DAYS} days.")
    made = await tokens.make_token(
        desk, actor(), form.get("name", "").strip(), form.get("scope", ""), days=int(days)
    )
    return await _render_access(made)


@blueprint.post(f"{_PAGE}/tokens/revoke")
@needs_session
async def revoke_token() -> Redirect:
    """Revoke a token. A lost one must end at once, so no password is needed."""
    await tokens.revoke_token(operator().desk, actor(), g.form.get("name", ""))
    return _back()


def _actor_without_key() -> Actor:
    """Return the actor without a request key, which only one action may have."""
    return attrs.evolve(actor(), request=None)


def _back() -> Redirect:
    return redirect(_PAGE, HTTPStatus.SEE_OTHER)
