"""The API of the passkey script: options, and signed responses."""

from typing import Any, cast

from quart import Response, current_app, request

from gateway.errors import InvalidCredentials, NeedsFresh, ValidationError, WrongValue
from gateway.web import bodies, wire
from gateway.web.front.current import address
from gateway_operator.desk import passkeys, sessions
from gateway_operator.desk.passkeys import Asking
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import (
    actor,
    check_origin,
    current_session,
    make_fresh,
    needs_session,
    require_fresh,
)
from gateway_operator.pages.login import begin_session
from gateway_operator.pages.passwords import count_attempt
from gateway_operator.state import operator


@blueprint.get("/admin/passkeys/login")
async def ask_for_login() -> dict[str, Any]:
    """Return the options for a login; nothing is stored."""
    return passkeys.login_options(operator().desk, _asking("login"))


@blueprint.post("/admin/passkeys/login")
async def log_in_by_passkey() -> Response:
    """Log in by a passkey; every attempt counts."""
    check_origin()
    device = await count_attempt()
    answer = await _read_answer()
    await _verify_answer(answer, _asking("login"))
    response = _ok()
    await begin_session(response, "passkey", is_known=device is not None)
    return response


@blueprint.get("/admin/passkeys/fresh")
@needs_session
async def ask_for_fresh() -> dict[str, Any]:
    """Return the options for a passkey in place of the password."""
    return passkeys.login_options(operator().desk, _asking_of_session("fresh"))


@blueprint.post("/admin/passkeys/fresh")
@needs_session
async def give_passkey_again() -> Response:
    """Make the session fresh by a passkey."""
    await count_attempt()
    await _verify_answer(await _read_answer(), _asking_of_session("fresh"))
    await make_fresh("passkey")
    return _ok()


@blueprint.get("/admin/passkeys/new")
@needs_session
async def ask_for_new() -> dict[str, Any]:
    """Return the options to create a passkey."""
    _check_fresh()
    return await passkeys.new_options(operator().desk, _asking_of_session("new"))


@blueprint.post("/admin/passkeys/new")
@needs_session
async def add_passkey() -> Response:
    """Store a passkey that the browser has created."""
    _check_fresh()
    answer = await _read_answer()
    name = answer.pop("name", "")
    await passkeys.add_passkey(
        operator().desk,
        actor(),
        name if isinstance(name, str) else "",
        answer,
        _asking_of_session("new"),
    )
    return _ok()


def _check_fresh() -> None:
    try:
        require_fresh()
    except NeedsFresh:
        raise NeedsFresh("Reload the page, and enter the password first.") from None


async def _verify_answer(answer: dict[str, Any], asking: Asking) -> None:
    """Verify a passkey's response; raises `InvalidCredentials`, and counts a refused login."""
    desk = operator().desk
    try:
        await passkeys.take_answer(desk, answer, asking)
    except WrongValue as error:
        await sessions.note_refused(desk, address())
        raise InvalidCredentials(str(error)) from error


async def _read_answer() -> dict[str, Any]:
    """Return the browser's response; raises `ValidationError` unless it is a JSON object."""
    if request.mimetype != "application/json":
        raise ValidationError("Send the passkey's answer as application/json.")
    return dict(bodies.read_object(cast(bytes, await request.get_data(as_text=False))))


def _asking(purpose: str) -> Asking:
    return Asking(key=str(current_app.secret_key), purpose=purpose)


def _asking_of_session(what: str) -> Asking:
    return _asking(f"{what} {current_session().id}")


def _ok() -> Response:
    return Response(f"{wire.dumps({'success': True})}\n", mimetype="application/json")
