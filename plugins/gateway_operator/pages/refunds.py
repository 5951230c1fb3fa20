"""The page Refunds, with a confirmation dialog for each decision."""

import secrets
from http import HTTPStatus

from quart import Response, g, redirect, request
from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response as Redirect

from gateway.errors import WrongValue
from gateway_operator.actions import refunds as actions
from gateway_operator.actions.refunds import RefundChoice
from gateway_operator.desk.refunds_list import find_refunds, read_refunds
from gateway_operator.desk.system import refund_key_problem
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, is_fresh, needs_session
from gateway_operator.pages.page import answer_dialog
from gateway_operator.pages.refund_dialogs import DIALOGS, Asked, read_choices
from gateway_operator.state import operator

_PAGE = "/admin/refunds"
_LAST_CHARS = 4
# By the value of `?done=`.
_SENDS = ("approved", "retried")
_DONE = {
    "approved": "Approved. They are sent within half a minute. Until it is signed, an approval "
    "can be taken back here.",
    "rejected": "Rejected. You can still approve them later.",
    "retried": "It is sent again, with the same nonce: the token pays it only once.",
    "taken-back": "The approval was taken back. Nothing was sent.",
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
    done = request.args.get("done", "")
    problem = await refund_key_problem(operator().desk) if done in _SENDS else None
    return await render(
        "refunds.html",
        page="refunds",
        p=page,
        done=f"Approved, but nothing is sent yet: {problem}" if problem else _DONE.get(done, ""),
        is_sent=problem is None,
    )


@blueprint.post(f"{_PAGE}/ask")
@needs_session
async def ask_about_refunds() -> Response:
    """Show the dialog for a decision."""
    what, _, only = g.form.get("do", "").partition(":")
    if what not in DIALOGS:
        raise WrongValue("Choose an action for these refunds.")
    desk, task_ids = operator().desk, [only] if only else g.form.getlist("task")
    refunds = await find_refunds(desk, list(dict.fromkeys(task_ids)))
    asked = Asked(desk=desk, refunds=refunds, key=secrets.token_urlsafe(12), is_fresh=is_fresh())
    ask = await DIALOGS[what](asked)
    return await answer_dialog(ask, page="refunds")


@blueprint.post(f"{_PAGE}/approve")
@needs_session
async def approve_refunds() -> Redirect:
    """Approve the refunds of the dialog, unless they have changed since."""
    form, to = g.form, None
    if "to" in form:
        to = form["to"].strip()
        if form.get("last", "").strip().lower() != to[-_LAST_CHARS:].lower():
            raise WrongValue("The last 4 characters do not match the address. Nothing was sent.")
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
    """Reject the refunds of the dialog."""
    task_ids = [choice.task_id for choice in read_choices(g.form)]
    await actions.reject(operator().desk, actor(), task_ids, reason=g.form.get("reason", ""))
    return _back("rejected", "rejected")


@blueprint.post(f"{_PAGE}/retry")
@needs_session
async def retry_refund() -> Redirect:
    """Send a failed refund again."""
    await actions.retry(
        operator().desk, actor(), _one_choice(g.form), reason=g.form.get("reason", "")
    )
    return _back("moving", "retried")


@blueprint.post(f"{_PAGE}/take-back")
@needs_session
async def take_refund_back() -> Redirect:
    """Withdraw an approval that is not signed yet."""
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
