"""The page of refunds: who is owed what, and one question before each decision."""

import secrets
from http import HTTPStatus

from quart import Response, g, redirect, request
from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response as Redirect

from gateway.errors import WrongValue
from gateway_operator.actions import refunds as actions
from gateway_operator.actions.refunds import RefundChoice
from gateway_operator.desk.refunds_list import find_refunds, read_refunds
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, is_fresh, needs_session
from gateway_operator.pages.page import answer_question
from gateway_operator.pages.refund_dialogs import QUESTIONS, Asked, read_choices
from gateway_operator.state import operator

_PAGE = "/admin/refunds"
_LAST_CHARS = 4
# What `?done=` may be, and what the page then says.
_DONE = {
    "approved": "Approved. They are sent within half a minute; until one is signed it can be taken "
    "back here.",
    "rejected": "Rejected. A later approval takes that back.",
    "retried": "It is sent once more, with the same nonce: the token pays it once.",
    "taken-back": "The approval is taken back. Nothing was sent.",
}


@blueprint.get(_PAGE)
@needs_session
async def show_refunds() -> Response:
    """List the refunds of one tab."""
    page = await read_refunds(
        operator().desk,
        request.args.get("state", "undecided"),
        _parse_before(request.args.get("before", "")),
    )
    done = _DONE.get(request.args.get("done", ""), "")
    return await render("refunds.html", page="refunds", p=page, done=done)


@blueprint.post(f"{_PAGE}/ask")
@needs_session
async def ask_about_refunds() -> Response:
    """Ask once more before a decision: to whom, how much, and what the key holds."""
    what, _, only = g.form.get("do", "").partition(":")
    if what not in QUESTIONS:
        raise WrongValue("Choose what is to be done with these refunds.")
    desk, task_ids = operator().desk, [only] if only else g.form.getlist("task")
    refunds = await find_refunds(desk, list(dict.fromkeys(task_ids)))
    asked = Asked(desk=desk, refunds=refunds, key=secrets.token_urlsafe(12), is_fresh=is_fresh())
    ask = await QUESTIONS[what](asked)
    return await answer_question(ask, page="refunds")


@blueprint.post(f"{_PAGE}/approve")
@needs_session
async def approve_refunds() -> Redirect:
    """Approve the refunds that the question showed, if they still are as it showed them."""
    form, to = g.form, None
    if "to" in form:
        to = form["to"].strip()
        if form.get("last", "").strip().lower() != to[-_LAST_CHARS:].lower():
            raise WrongValue("The last 4 characters are not those of the address. Nothing is sent.")
    await actions.approve(
        operator().desk,
        actor(),
        read_choices(form),
        reason=form.get("reason", ""),
        to=to,
        accepts_unproven=form.get("sure") == "yes",
        is_fresh=is_fresh(),
    )
    return _back("moving", "approved")


@blueprint.post(f"{_PAGE}/reject")
@needs_session
async def reject_refunds() -> Redirect:
    """Reject the refunds that the question showed."""
    task_ids = [choice.task_id for choice in read_choices(g.form)]
    await actions.reject(operator().desk, actor(), task_ids, reason=g.form.get("reason", ""))
    return _back("rejected", "rejected")


@blueprint.post(f"{_PAGE}/retry")
@needs_session
async def retry_refund() -> Redirect:
    """Send a refund that failed once more."""
    await actions.retry(
        operator().desk, actor(), _one_choice(g.form), reason=g.form.get("reason", "")
    )
    return _back("moving", "retried")


@blueprint.post(f"{_PAGE}/take-back")
@needs_session
async def take_refund_back() -> Redirect:
    """Take an approval back while nothing is signed."""
    task_id = _one_choice(g.form).task_id
    await actions.take_back(operator().desk, actor(), task_id, reason=g.form.get("reason", ""))
    return _back("undecided", "taken-back")


def _one_choice(form: MultiDict[str, str]) -> RefundChoice:
    choices = read_choices(form)
    if len(choices) != 1:
        raise WrongValue("This is for one refund at a time.")
    return choices[0]


def _parse_before(text: str) -> int | None:
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):  # noqa: PLR2004
        raise WrongValue("There is no such page of refunds.")
    return int(text) if text else None


def _back(state: str, done: str) -> Redirect:
    return redirect(f"{_PAGE}?state={state}&done={done}", HTTPStatus.SEE_OTHER)
