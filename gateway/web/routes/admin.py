"""The operator's pages: a login with counted attempts, the overview, and the full checks."""

import base64
import hashlib
import math
from http import HTTPStatus
from typing import Any, cast

from quart import Blueprint, Response, make_response, redirect, render_template, request, session
from werkzeug.wrappers import Response as Redirect

from gateway.errors import InvalidCredentials, TooManyRequests, ValidationError
from gateway.settings import parse_limit
from gateway.web import wire
from gateway.web.devices import known_device, remember_device
from gateway.web.rate_limits import address
from gateway.web.routes.health import checks, for_operator, status_of
from gateway.web.services import services

blueprint = Blueprint("admin", __name__)

SESSION_S = 3600
_MAX_PASSWORD_CHARS = 1024
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem;"
    "color:#1c2733;background:#fbfaf7}table{border-collapse:collapse;margin:1rem 0;width:100%}"
    "td,th{padding:.4rem .8rem;border-bottom:1px solid #ddd;text-align:left}"
    "td:last-child{text-align:right;font-variant-numeric:tabular-nums}"
    "input,button{font:inherit;padding:.5rem .8rem;border:1px solid #aab;border-radius:6px}"
    "button{background:#1c2733;color:#fff;cursor:pointer}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_CSP = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)


@blueprint.post("/admin/login")
async def login() -> Redirect | dict[str, Any]:
    """Log the operator in; every attempt counts, also over restarts of the gateway."""
    known = known_device(await _password_fingerprint())
    await _count_attempt(known)
    password, is_form = await _read_password()
    if not await services().password.matches(password, is_known=known is not None):
        raise InvalidCredentials("The password is wrong.")
    session.permanent = True
    session["admin"] = await _password_fingerprint()
    return redirect("/admin", 303) if is_form else {"success": True, "expiresIn": SESSION_S}


@blueprint.get("/admin")
async def overview() -> Response:
    """Show the checks and how many tasks and payments are in each state; else the login form."""
    gateway = services()
    is_admin = await _is_admin()
    page = await render_template(
        "admin.html",
        style=_STYLE,
        name=gateway.settings.name,
        counts=await gateway.store.counts() if is_admin else None,
        checks=for_operator(await checks(gateway), gateway) if is_admin else (),
    )
    headers = {"Content-Security-Policy": _CSP, "Cache-Control": "no-store"}
    answer = cast(Response, await make_response(page, 200 if is_admin else 401, headers))
    if is_admin:
        remember_device(answer, await _password_fingerprint())
    return answer


@blueprint.get("/admin/ready")
async def ready() -> tuple[dict[str, Any], int, dict[str, str]]:
    """Answer as /api/ready does, but with the details that only the operator may read."""
    if not await _is_admin():
        raise InvalidCredentials("Log in first: POST /admin/login.")
    gateway = services()
    found = await checks(gateway)
    status = status_of(found)
    body = {"ready": status == HTTPStatus.OK, "checks": for_operator(found, gateway)}
    return body, status, {"Cache-Control": "no-store"}


async def _is_admin() -> bool:
    """Whether the request carries a session that was opened with today's password."""
    known = session.get("admin")
    return known is not None and known == await _password_fingerprint()


async def _count_attempt(device: str | None) -> None:
    """Count a login attempt, and raise `TooManyRequests` past a limit.

    It counts by its address and in the total of all addresses. An attempt of a known browser
    counts by the browser only.
    """
    settings = services().settings
    limit, window_s = parse_limit(settings.limit_login)
    total, total_window_s = parse_limit(settings.limit_login_total)
    wait_s = await services().store.count_attempt(
        address() if device is None else f"device {device}",
        limit=limit,
        window_s=window_s,
        total=(total if device is None else None, total_window_s),
        now=services().now(),
    )
    if wait_s > 0:
        raise TooManyRequests(max(1, math.ceil(wait_s)))


async def _read_password() -> tuple[str, bool]:
    """Return the password and whether it came by the form; raises `ValidationError`."""
    is_form = request.mimetype == "application/x-www-form-urlencoded"
    password: Any
    if is_form:
        password = (await request.form).get("password")
    else:
        password = wire.read_password(cast(bytes, await request.get_data(as_text=False)))
    if not isinstance(password, str) or not 1 <= len(password) <= _MAX_PASSWORD_CHARS:
        raise ValidationError(
            f"password must be a string of 1 to {_MAX_PASSWORD_CHARS:,} characters."
        )
    return password, is_form


async def _password_fingerprint() -> str:
    """Return a digest of the password's hash; sessions hold it, so a new password ends them."""
    stored = await services().password.hash()
    return hashlib.sha256(stored.encode()).hexdigest()[:16]
