"""Login, logout, and confirming the password."""

from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlsplit

from quart import Response, g, redirect, request
from werkzeug.wrappers import Response as Redirect

from gateway.errors import ValidationError
from gateway.web import bodies, wire
from gateway.web.front.current import address, current_gateway
from gateway_operator.desk import sessions
from gateway_operator.pages.devices import remember_device
from gateway_operator.pages.frame import FORM, blueprint
from gateway_operator.pages.guards import (
    actor,
    check_origin,
    cookie_name,
    current_session,
    needs_fresh,
    needs_session,
)
from gateway_operator.pages.passwords import (
    MAX_PASSWORD_CHARS,
    check_password,
    count_attempt,
    password_fingerprint,
)
from gateway_operator.state import operator

_MAX_CODE_CHARS = 16
_HOME = "/admin"


@blueprint.post("/admin/login")
async def log_in() -> Response | Redirect:
    """Log in. Every attempt counts, even across restarts of the gateway."""
    is_form = request.mimetype == FORM
    if is_form:
        g.form = await request.form
    check_origin(is_program_allowed=not is_form)
    device = await count_attempt()
    password, code = await _read_login()
    by = await check_password(password, code, is_known=device is not None)
    if is_form:
        answer: Any = redirect(safe_path(g.form.get("next", "")), HTTPStatus.SEE_OTHER)
    else:
        body = {"success": True, "expiresIn": sessions.IDLE_S}
        answer = Response(f"{wire.dumps(body)}\n", mimetype="application/json")
    await begin_session(answer, by, is_known=device is not None)
    return cast(Response, answer)


async def begin_session(answer: Response, by: str, *, is_known: bool) -> None:
    """Open a session for the request's browser, and set its cookies."""
    gateway, fingerprint = current_gateway(), await password_fingerprint()
    login = sessions.NewLogin(
        address=address(), device=request.headers.get("User-Agent", ""), by=by, is_known=is_known
    )
    secret, session = await sessions.open_session(operator().desk, login, fingerprint)
    answer.set_cookie(
        cookie_name(),
        secret,
        max_age=sessions.MAX_S,
        path="/",
        secure=gateway.settings.is_https,
        httponly=True,
        samesite="Strict",
    )
    remember_device(answer, fingerprint, session.id)


@blueprint.post("/admin/logout")
@needs_session
async def log_out() -> Redirect:
    """End this browser's session."""
    await sessions.end_session(operator().desk, actor(), current_session())
    g.caller = None
    answer = redirect(_HOME, HTTPStatus.SEE_OTHER)
    answer.delete_cookie(
        cookie_name(),
        path="/",
        secure=current_gateway().settings.is_https,
        httponly=True,
        samesite="Strict",
    )
    return answer


@blueprint.post("/admin/fresh")
@needs_fresh
async def give_password_again() -> Redirect:
    """Redirect to the page that needed the password; the guard has verified it."""
    return redirect(safe_path(g.form.get("next", "")), HTTPStatus.SEE_OTHER)


async def _read_login() -> tuple[str, str]:
    """Return password and code of a form or of JSON; raises `ValidationError`."""
    password: Any
    code: Any
    if "form" in g:
        password, code = g.form.get("password"), g.form.get("code", "")
    else:
        data = cast(bytes, await request.get_data(as_text=False))
        password, code = bodies.read_login(data)
    if not isinstance(password, str) or not 1 <= len(password) <= MAX_PASSWORD_CHARS:
        raise ValidationError(
            f"password must be a string of 1 to {MAX_PASSWORD_CHARS:,} characters."
        )
    return password, (code or "")[:_MAX_CODE_CHARS]


def safe_path(path: str) -> str:
    """Return a safe path to redirect to: one of the operator's pages, else the overview."""
    parts = urlsplit(path) if path.isascii() and path.isprintable() else None
    is_ours = (
        parts is not None
        and not parts.scheme
        and not parts.netloc
        and "\\" not in path
        and (parts.path == _HOME or parts.path.startswith(f"{_HOME}/"))
    )
    return path if is_ours else _HOME
