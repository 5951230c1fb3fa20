"""Access control of the operator's routes, as decorators.

A page needs a session, the JSON API a session or a token. With a session, a change must come from
the gateway's own pages.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar
from urllib.parse import urlsplit

import attrs
from quart import g, request
from werkzeug.datastructures import MultiDict

from gateway.errors import (
    ForeignOrigin,
    InvalidCredentials,
    NeedsFresh,
    ValidationError,
    WrongScope,
)
from gateway.web.front.current import address, current_gateway
from gateway_operator.audit_log import Actor
from gateway_operator.desk import sessions, tokens
from gateway_operator.desk.references import lengthen_ids
from gateway_operator.logins import OperatorSession, OperatorToken, Scope
from gateway_operator.pages.frame import FORM, SETTING_FIELDS, LoginNeeded
from gateway_operator.pages.passwords import (
    MAX_PASSWORD_CHARS,
    check_password,
    count_attempt,
    password_fingerprint,
)
from gateway_operator.state import operator

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")
_Route = Callable[_Parameters, Awaitable[_Answer]]

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
_MAX_KEY_CHARS = 128
# No references are replaced in these.
_TYPED = ("password", "code", "reason", *SETTING_FIELDS)


@attrs.frozen(kw_only=True)
class Caller:
    """A logged-in browser, or a program with a token."""

    session: OperatorSession | None = None
    token: OperatorToken | None = None

    @property
    def name(self) -> str:
        """The name in the audit log."""
        return self.token.name if self.token is not None else self._session.short

    @property
    def unique_name(self) -> str:
        """A name that is never reused."""
        if self.token is not None:
            return f"token {self.token.id}"
        return f"session {self._session.id[:16]}"

    @property
    def _session(self) -> OperatorSession:
        if self.session is None:
            raise LoginNeeded
        return self.session


def needs_session(
    route: _Route[_Parameters, _Answer],
) -> _Route[_Parameters, _Answer]:
    """Require a session, else show the login form.

    A form with a password, as in `confirm.html`, makes the session fresh.
    """

    @functools.wraps(route)
    async def guarded(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Answer:
        caller = await find_caller()
        if caller is None or caller.session is None:
            raise LoginNeeded
        await _check_post()
        return await route(*args, **kwargs)

    return guarded


def needs_fresh(route: _Route[_Parameters, _Answer]) -> _Route[_Parameters, _Answer]:
    """Require a session that authenticated in the last ten minutes.

    Otherwise ask for the password, and then repeat the request.
    """

    @functools.wraps(route)
    async def guarded(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Answer:
        require_fresh()
        return await route(*args, **kwargs)

    return needs_session(guarded)


def needs_scope(
    scope: Scope,
) -> Callable[[_Route[_Parameters, _Answer]], _Route[_Parameters, _Answer]]:
    """Require a session, or a token with the scope."""

    def decorate(route: _Route[_Parameters, _Answer]) -> _Route[_Parameters, _Answer]:
        @functools.wraps(route)
        async def guarded(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Answer:
            caller = await find_caller()
            if caller is None:
                raise LoginNeeded
            if caller.token is not None and scope == "act" and caller.token.scope != "act":
                raise WrongScope("This token may only read. Create one with the scope act.")
            if caller.token is None:
                await _check_post()
            if request.method == "POST":
                _check_key(request.headers.get("Idempotency-Key", ""))
            return await route(*args, **kwargs)

        return guarded

    return decorate


def require_fresh() -> None:
    """Raise `NeedsFresh` unless the session authenticated in the last ten minutes."""
    if not is_fresh():
        raise NeedsFresh("This needs the password again. A token cannot do it: use the page.")


def is_fresh() -> bool:
    """Whether the session authenticated in the last ten minutes; never for a token."""
    session = _caller().session
    return session is not None and sessions.is_fresh(operator().desk, session)


def actor() -> Actor:
    """Return the actor for the audit log; requires a guard."""
    caller = _caller()
    # Pages send the request key in the form, API clients in a header.
    form = g.get("form") or {}
    key = form.get("request", "") or request.headers.get("Idempotency-Key", "")
    is_api = caller.token is not None or request.path.startswith("/admin/api/")
    return Actor(
        door="api" if is_api else "page",
        name=caller.name,
        address=address(),
        request=f"{caller.unique_name}: {key[:_MAX_KEY_CHARS]}" if key else None,
    )


def current_session() -> OperatorSession:
    """Return the request's session; requires `needs_session`."""
    session = _caller().session
    if session is None:
        raise LoginNeeded
    return session


async def find_caller() -> Caller | None:
    """Return who sent the request; None if it is not authenticated.

    Raises `TooManyRequests` for an address that tries many sessions or tokens.
    """
    if "caller" not in g:
        g.caller = await _find_caller()
    caller: Caller | None = g.caller
    return caller


async def _find_caller() -> Caller | None:
    desk = operator().desk
    kind, _, token_secret = request.headers.get("Authorization", "").partition(" ")
    cookie = request.cookies.get(cookie_name(), "")
    if kind.lower() == "bearer":
        token = await tokens.find_token(desk, token_secret.strip())
        found = Caller(token=token) if token is not None else None
    elif cookie:
        session = await sessions.find_session(desk, cookie, await password_fingerprint())
        found = Caller(session=session) if session is not None else None
    else:
        return None
    if found is None:
        # Each attempt costs a query, like a poll of an unknown task.
        await current_gateway().limits.hit("task", address())
    return found


def cookie_name() -> str:
    """Return the name of the session's cookie.

    With `__Host-`, browsers limit it to this host, https and all paths.
    """
    return "__Host-gateway_admin" if current_gateway().settings.is_https else "gateway_admin"


def check_origin(*, is_program_allowed: bool = False) -> None:
    """Raise `ForeignOrigin` unless the request comes from a page of this gateway.

    Browsers send the origin with every POST, so a request without one does not come from a foreign
    page. `is_program_allowed` accepts it.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    is_own = site == "same-origin" if site is not None else _is_own(origin)
    if not is_own and not (is_program_allowed and site is None and origin is None):
        raise ForeignOrigin(
            "This was not sent from a page of this gateway, so nothing was done. Open the page "
            "at GATEWAY_BASE_URL and try again."
        )


def _is_own(origin: str | None) -> bool:
    """Whether an origin is the gateway's, or its local address."""
    if origin is None:
        return False
    own = urlsplit(current_gateway().settings.base_url)
    if origin == f"{own.scheme}://{own.netloc}".lower():
        return True
    is_local = urlsplit(origin).hostname in _THIS_MACHINE
    return is_local and origin == f"{request.scheme}://{request.host}"


async def _check_post() -> None:
    """Check the origin of a POST, read its form, and verify a password in it."""
    if request.method in ("GET", "HEAD"):
        return
    check_origin()
    # For a page, any other body is an empty form.
    g.form = await _read_form() if request.mimetype == FORM else MultiDict()
    if g.form:
        password = g.form.get("password", "")
        if password:
            await _verify_password(password[:MAX_PASSWORD_CHARS], g.form.get("code", ""))


async def _read_form() -> MultiDict[str, str]:
    """Return the form, with references replaced by task ids."""
    desk, form = operator().desk, await request.form
    return MultiDict(
        [
            (name, text if name in _TYPED else await lengthen_ids(desk, text))
            for name, text in form.items(multi=True)
        ]
    )


async def _verify_password(password: str, code: str) -> None:
    device = await count_attempt()
    try:
        by = await check_password(password, code, is_known=device is not None)
    except InvalidCredentials as error:
        raise NeedsFresh(error.message) from None
    await make_fresh(by)


async def make_fresh(by: str) -> None:
    """Make the request's session fresh; `by` is the method."""
    desk, session = operator().desk, current_session()
    await sessions.make_fresh(desk, actor(), session, by)
    fresh = attrs.evolve(session, fresh_until=desk.now() + sessions.FRESH_S)
    g.caller = attrs.evolve(_caller(), session=fresh)


def _check_key(key: str) -> None:
    if not 1 <= len(key) <= _MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
        raise ValidationError(
            f"Send the header Idempotency-Key with 1 to {_MAX_KEY_CHARS} characters: a repeated "
            "request is then carried out once."
        )


def _caller() -> Caller:
    caller: Caller | None = g.get("caller")
    if caller is None:
        raise LoginNeeded
    return caller
