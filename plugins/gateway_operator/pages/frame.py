"""The blueprint of the operator's routes, with headers and error responses."""

from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import msgspec
from quart import Blueprint, Response, current_app, g, request

from gateway.errors import ActionRefused, DiskFull, InvalidCredentials, NeedsFresh
from gateway.web.front import answers
from gateway.web.front.answers import NOT_STORED, Answer, json_answer
from gateway.web.front.current import current_gateway
from gateway_operator.audit_log import AlreadyDone
from gateway_operator.desk import codes, passkeys
from gateway_operator.desk.references import shorten_ids
from gateway_operator.pages.devices import remember_device
from gateway_operator.pages.page import HEADERS, Ask, answer_page
from gateway_operator.pages.passwords import password_fingerprint
from gateway_operator.state import operator

blueprint = Blueprint("admin", __name__)

FORM = "application/x-www-form-urlencoded"
# Never repeated in a page.
SECRET_FIELDS = ("username", "password", "code", "secret_value")
# The value of a setting, which is no text of the gateway's own.
SETTING_FIELDS = ("value", "secret_value")
_JSON_PATHS = ("/admin/api/", "/admin/ready", "/admin/passkeys/")


class LoginNeeded(InvalidCredentials):
    """The request has neither an open session nor a valid token."""

    def __init__(self) -> None:
        super().__init__("Log in first: POST /admin/login.")


def wants_page() -> bool:
    """Whether to respond with a page or with JSON."""
    if request.path.startswith(_JSON_PATHS) or "Authorization" in request.headers:
        return False
    return request.method in ("GET", "HEAD") or request.mimetype in (FORM, "multipart/form-data")


async def render(template: str, *, page: str, **values: Any) -> Response:
    """Return a page of `static/admin/`; `page` is its key in `page.PAGES`."""
    return await answer_page(template, page=page, **values)


@blueprint.after_request
async def complete_answer(response: Response) -> Response:
    """Set the headers, shorten task ids, and remember a logged-in browser."""
    for name, value in HEADERS.items():
        if name != "Content-Type":
            response.headers.setdefault(name, value)
    if response.mimetype == "text/html" and not g.get("shows_ids"):
        # An id in the request itself is not shortened.
        known = f"{request.full_path} {g.get('whole_ids', '')}"
        response.set_data(shorten_ids(await response.get_data(as_text=True), known))
    caller = g.get("caller")
    is_new_page = wants_page() and "X-Live" not in request.headers
    if caller is not None and caller.session is not None and is_new_page:
        remember_device(response, await password_fingerprint(), caller.session.id)
    return response


@blueprint.errorhandler(Exception)
async def answer_error(error: Exception) -> Response:
    """Return an error as a page for a person, or as JSON for a program."""
    plain = _answer_plainly(error)
    if not wants_page():
        return plain.to_response()
    if isinstance(error, InvalidCredentials):
        problem = "" if isinstance(error, LoginNeeded) else error.message
        response = await render_login(problem)
    elif isinstance(error, NeedsFresh):
        response = await _render_fresh(str(error))
    else:
        response = await answer_page(
            "error.html",
            page="system",
            status=plain.status,
            sentence=_sentence_of(error, plain),
            form=find_form(),
        )
    if "Retry-After" in plain.headers:
        response.headers["Retry-After"] = plain.headers["Retry-After"]
    return response


def find_form() -> str | None:
    """Return the path of the page whose form was sent; None if there is no way back to it."""
    sent_from = urlsplit(request.referrer or "")
    if request.method != "POST" or sent_from.netloc != request.host:
        return None
    # A page that only a form can open is not found by its address.
    routes = current_app.create_url_adapter(request)
    if routes is None or not sent_from.path.startswith("/admin"):
        return None
    if not routes.test(sent_from.path, method="GET"):
        return None
    return sent_from._replace(scheme="", netloc="", fragment="").geturl()


def _answer_plainly(error: Exception) -> Answer:
    if isinstance(error, ActionRefused):
        # Not redacted: the text has no secrets but may quote the request, and a removed word would
        # confirm a guess.
        text = shorten_ids(str(error), request.path)
        return json_answer({"error": text, "code": error.code}, error.status, NOT_STORED)
    if isinstance(error, DiskFull):
        body: dict[str, object] = {"error": f"{error.remedy}.", "code": error.code}
        return json_answer(body, error.status, NOT_STORED)
    if isinstance(error, AlreadyDone):
        body = {"done": True, "repeated": True, "actionId": error.action.id}
        return json_answer(body, HTTPStatus.OK, NOT_STORED)
    return answers.answer_error(current_gateway(), error, str(request.url_rule))


def _sentence_of(error: Exception, plain: Answer) -> str:
    if isinstance(error, AlreadyDone):
        return "This was done already. It was not done again."
    sentence: str = msgspec.json.decode(plain.body)["error"]
    return sentence


async def render_login(problem: str = "") -> Response:
    """Return the login form; a login redirects to the requested page."""
    desk = operator().desk
    asked_for = request.full_path.rstrip("?") if request.method == "GET" else ""
    form = g.get("form")
    return await answer_page(
        "login.html",
        page="",
        status=HTTPStatus.UNAUTHORIZED,
        problem=problem,
        next=form.get("next", "") if form is not None else asked_for,
        needs_code=await codes.are_on(desk),
        has_passkeys=passkeys.are_installed() and bool(await passkeys.list_passkeys(desk)),
    )


async def _render_fresh(problem: str) -> Response:
    """Return the page that asks for the password, and then repeats the request."""
    desk, form = operator().desk, g.get("form")
    if request.method != "POST" or form is None:
        action, repeated = "/admin/fresh", [("next", request.full_path.rstrip("?"))]
    else:
        sent = form.items(multi=True)
        action, repeated = request.path, [pair for pair in sent if pair[0] not in SECRET_FIELDS]
    ask = Ask(
        title="Confirm that it is you",
        action=action,
        back="/admin",
        button="Continue",
        intro="The next step sends money, or changes access or settings. It needs your password, "
        "at most once in ten minutes.",
        needs_password=True,
        needs_code=await codes.are_on(desk),
    )
    was_given = form is not None and bool(form.get("password"))
    return await answer_page(
        "fresh.html",
        page="system",
        status=HTTPStatus.FORBIDDEN,
        ask=ask,
        problem=problem if was_given else "",
        given_reason="",
        repeated=repeated,
        has_passkeys=passkeys.are_installed() and bool(await passkeys.list_passkeys(desk)),
    )
