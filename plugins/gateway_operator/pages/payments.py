"""The page Payments: open payments, overpayments, and unused transfers."""

import secrets
from http import HTTPStatus

from quart import Response, g, redirect
from werkzeug.wrappers import Response as Redirect

from gateway_operator.actions.transfers import mark_seen, parse_log
from gateway_operator.desk.payments import find_unused, read_payments, read_unused
from gateway_operator.desk.wording import usdc
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, needs_session
from gateway_operator.pages.page import Ask, answer_dialog
from gateway_operator.state import operator

_PAGE = "/admin/payments"


@blueprint.get(_PAGE)
@needs_session
async def show_payments() -> Response:
    """Show the page."""
    desk = operator().desk
    return await render(
        "payments.html",
        page="payments",
        p=await read_payments(desk),
        u=await read_unused(desk),
    )


@blueprint.post(f"{_PAGE}/ask")
@needs_session
async def ask_about_transfer() -> Response:
    """Show the dialog that marks a transfer as seen."""
    tx_hash, log_index = _read_transfer()
    found = await find_unused(operator().desk, tx_hash, log_index)
    ask = Ask(
        title="Mark this transfer as seen?",
        action=f"{_PAGE}/seen",
        back=_PAGE,
        button="Mark as seen",
        intro="Nothing is sent. The transfer stays in the list, without an alarm.",
        facts=[
            ("Amount", f"{usdc(found.amount_units)} USDC"),
            ("From", found.sender),
            ("Transaction", found.tx_hash),
            ("Likely reason", found.why),
        ],
        fields={
            "transfer": f"{found.tx_hash}:{found.log_index}",
            "request": secrets.token_urlsafe(12),
        },
        reason="required",
    )
    return await answer_dialog(ask, page="payments")


@blueprint.post(f"{_PAGE}/seen")
@needs_session
async def mark_transfer_seen() -> Redirect:
    """Mark a transfer as seen, with a reason."""
    await mark_seen(operator().desk, actor(), *_read_transfer(), reason=g.form.get("reason", ""))
    return redirect(_PAGE, HTTPStatus.SEE_OTHER)


def _read_transfer() -> tuple[str, int]:
    tx_hash, _, number = g.form.get("transfer", "").partition(":")
    return tx_hash, parse_log(number)
