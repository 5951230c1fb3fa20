"""The page Payments: all payments, open ones, overpayments, and unused transfers."""

import secrets
from http import HTTPStatus
from urllib.parse import urlencode

from quart import Response, g, redirect, request
from werkzeug.wrappers import Response as Redirect

from gateway_operator.actions.transfers import give_back, mark_seen, parse_log
from gateway_operator.desk.all_payments import (
    STATES,
    list_payments,
    make_payment_filter,
    read_buyer,
)
from gateway_operator.desk.moved import find_moved, read_moved
from gateway_operator.desk.movement_conditions import describe_kind
from gateway_operator.desk.payments import Unused, find_unused, read_payments, read_unused
from gateway_operator.desk.references import find_id
from gateway_operator.desk.wording import usdc
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, is_fresh, needs_session
from gateway_operator.pages.page import Ask, answer_dialog
from gateway_operator.state import operator

_PAGE = "/admin/payments"
_FIELDS = ("state", "payer", "day", "q")


@blueprint.get(_PAGE)
@needs_session
async def show_payments() -> Response:
    """List the payments that match the filter; without one, also open and unused money."""
    desk, given = operator().desk, await read_filter()
    wanted = make_payment_filter(**given, before=request.args.get("before", ""))
    found = await list_payments(desk, wanted)
    chosen = {name: value for name, value in given.items() if value}
    is_plain = not chosen and wanted.before is None
    older = urlencode(chosen | {"before": found.next_before}) if found.next_before else ""
    return await render(
        "payments.html",
        page="payments",
        found=found,
        given=given,
        chosen=urlencode(chosen),
        is_first=wanted.before is None,
        older=older,
        states=STATES,
        p=await read_payments(desk) if is_plain else None,
        u=await read_unused(desk) if is_plain else None,
        m=await read_moved(desk) if is_plain else None,
        describe_kind=describe_kind,
    )


async def read_filter() -> dict[str, str]:
    """Return the filter of the page's address, which its CSV has too."""
    given = {name: request.args.get(name, "") for name in _FIELDS}
    given["q"] = await find_id(operator().desk, given["q"])
    return given


@blueprint.get("/admin/buyer")
@needs_session
async def show_buyer() -> Response:
    """Show the purchases of one payer."""
    found = await read_buyer(operator().desk, request.args.get("payer", ""))
    return await render("buyer.html", page="payments", b=found)


@blueprint.post(f"{_PAGE}/ask")
@needs_session
async def ask_about_transfer() -> Response:
    """Show the dialog that marks a transfer as seen."""
    found = await _find(g.form.get("transfer", ""))
    ask = Ask(
        title="Mark this transfer as seen?",
        action=f"{_PAGE}/seen",
        back=_PAGE,
        button="Mark as seen",
        intro="Nothing is sent. The transfer stays in the list, without an alarm.",
        facts=_facts(found),
        fields=_fields(found),
        reason="required",
    )
    return await answer_dialog(ask, page="payments")


@blueprint.post(f"{_PAGE}/mine")
@needs_session
async def ask_about_movement() -> Response:
    """Show the dialog that books a movement as the operator's own."""
    found = await find_moved(operator().desk, *_parse_transfer(g.form.get("transfer", "")))
    sent = found.movement.transfer
    ask = Ask(
        title="Was this you?",
        action=f"{_PAGE}/seen",
        back=_PAGE,
        button="It was me",
        intro="Nothing is sent. The transfer is booked as yours, and its alarm ends.",
        facts=[
            ("Amount", f"{usdc(sent.amount_units)} USDC"),
            ("From", sent.sender),
            ("To", sent.recipient),
            ("Transaction", sent.tx_hash),
        ],
        warnings=(
            ["If it was not you, somebody else has this key. Move the rest away first."]
            if found.movement.is_out
            else []
        ),
        fields={
            "transfer": f"{sent.tx_hash}:{sent.log_index}",
            "request": secrets.token_urlsafe(12),
        },
        reason="required",
        needs_password=found.movement.is_out and not is_fresh(),
    )
    return await answer_dialog(ask, page="payments")


@blueprint.get(f"{_PAGE}/refund")
@needs_session
async def ask_about_refund() -> Response:
    """Show the dialog that gives an unused transfer back; a condition links to it."""
    found = await _find(request.args.get("transfer", ""))
    ask = Ask(
        title="Give this transfer back?",
        action=f"{_PAGE}/refund",
        back=_PAGE,
        button=f"Give back {usdc(found.amount_units)} USDC",
        intro="No request can use it any more. The refund key sends it to where it came from.",
        facts=_facts(found),
        warnings=_warnings(found),
        fields=_fields(found),
        reason="optional",
        needs_tick="I want to pay an address that proved nothing.",
        needs_password=not is_fresh(),
    )
    return await answer_dialog(ask, page="payments")


@blueprint.post(f"{_PAGE}/refund")
@needs_session
async def give_transfer_back() -> Redirect:
    """Owe and approve the refund of an unused transfer."""
    await give_back(
        operator().desk,
        actor(),
        *_parse_transfer(g.form.get("transfer", "")),
        reason=g.form.get("reason", ""),
        accepts_unproven=g.form.get("sure") == "yes",
        is_fresh=is_fresh(),
    )
    return redirect("/admin/refunds?state=moving&done=approved", HTTPStatus.SEE_OTHER)


@blueprint.post(f"{_PAGE}/seen")
@needs_session
async def mark_transfer_seen() -> Redirect:
    """Mark a transfer as seen, with a reason."""
    tx_hash, log_index = _parse_transfer(g.form.get("transfer", ""))
    reason = g.form.get("reason", "")
    desk = operator().desk
    await mark_seen(desk, actor(), tx_hash, log_index, reason=reason, is_fresh=is_fresh())
    return redirect(_PAGE, HTTPStatus.SEE_OTHER)


async def _find(transfer: str) -> Unused:
    return await find_unused(operator().desk, *_parse_transfer(transfer))


def _facts(found: Unused) -> list[tuple[str, str]]:
    return [
        ("Amount", f"{usdc(found.amount_units)} USDC"),
        ("From", found.sender),
        ("Transaction", found.tx_hash),
        ("Likely reason", found.why),
    ]


def _warnings(found: Unused) -> list[str]:
    warnings = ["The sender may be an exchange, which credits nobody: then ask the buyer first."]
    if found.methods:
        names = ", ".join(found.methods)
        warnings.append(
            f"Payments by {names} came within a day of it. If that method takes USDC to this "
            "wallet, the transfer may have paid for one of them: check its records first."
        )
    return warnings


def _fields(found: Unused) -> dict[str, str]:
    """Return the hidden fields: the transfer, and a key that makes a repeat harmless."""
    return {
        "transfer": f"{found.tx_hash}:{found.log_index}",
        "request": secrets.token_urlsafe(12),
    }


def _parse_transfer(text: str) -> tuple[str, int]:
    tx_hash, _, number = text.partition(":")
    return tx_hash, parse_log(number)
