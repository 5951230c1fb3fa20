"""Confirmation dialogs of refunds: approve, redirect, reject, retry, take back."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs
from werkzeug.datastructures import MultiDict

from gateway.domain import RefundCase
from gateway.errors import WrongValue
from gateway_operator.actions.refunds import ApprovalPreview, RefundChoice, preview_approval
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.refunds_list import PER_PAGE, OwedRefund
from gateway_operator.desk.wording import counted, usdc
from gateway_operator.pages.page import Ask, Input

_PAGE = "/admin/refunds"
_FIELD = "refund-"
_CHOICE = re.compile(r"([A-Za-z0-9_-]{1,80}) ([0-9]{1,18}) (0x[0-9a-f]{40})( rejected)?")
_REASON_IS_PRIVATE = "The buyer's task shows only the state of the refund."


@attrs.frozen(kw_only=True)
class Asked:
    """The subject of a dialog."""

    desk: Desk
    refunds: Sequence[OwedRefund]

    # Identifies a form that is sent twice.
    key: str

    is_fresh: bool

    @property
    def task_ids(self) -> list[str]:
        """The tasks of the refunds."""
        return [one.row.task_id for one in self.refunds]

    async def preview_one(self) -> ApprovalPreview:
        """Return the effect of paying the one refund; raises `WrongValue` for several."""
        self.check_one()
        return await preview_approval(self.desk, self.task_ids)

    def check_one(self) -> None:
        """Raise `WrongValue` for several refunds."""
        if len(self.refunds) != 1:
            raise WrongValue("This is for one refund at a time.")

    def check_addresses(self) -> None:
        """Raise `WrongValue` if a refund has no address."""
        number = sum(one.needs_address for one in self.refunds)
        if number:
            raise WrongValue(
                f"No address is known for {counted(number, 'refund')}. Use Name an address for "
                "each of them; the others can be approved together."
            )


async def ask_approve(asked: Asked) -> Ask:
    """Return the dialog for refunds to the payers."""
    asked.check_addresses()
    preview = await preview_approval(asked.desk, asked.task_ids)
    payers = len({case.recipient for case in preview.cases})
    return Ask(
        title="Give money back?",
        action=f"{_PAGE}/approve",
        back=_PAGE,
        button=f"Give back {usdc(preview.sum_units)} USDC to {counted(payers, 'payer')}",
        facts=[*_amounts(asked.refunds), *_sums(preview)],
        warnings=[*_warnings(preview), *_billed(asked.refunds)],
        fields=_fields(asked),
        reason="optional",
        needs_tick=_unproven_tick(preview),
        needs_password=preview.needs_fresh and not asked.is_fresh,
    )


async def ask_redirect(asked: Asked) -> Ask:
    """Return the dialog for a refund to another address than the payer's."""
    preview = await asked.preview_one()
    needs_address = asked.refunds[0].needs_address
    return Ask(
        title=f"Give money back to {'an' if needs_address else 'another'} address?",
        action=f"{_PAGE}/approve",
        back=_PAGE,
        button=f"Give back {usdc(preview.sum_units)} USDC to this address",
        intro="No address is known: ask the buyer for one."
        if needs_address
        else "For a payer who cannot use the sending address, such as an exchange's.",
        facts=[*_amounts(asked.refunds), *_sums(preview)],
        warnings=["It cannot be taken back once it is signed.", *_warnings(preview)],
        fields=_fields(asked),
        inputs=[
            Input(name="to", label="Address on Base", longest=42),
            Input(
                name="last",
                label="Its last 4 characters again",
                hint="Type them from the payer's message.",
                longest=4,
            ),
        ],
        reason="required",
        needs_tick=_unproven_tick(preview),
        needs_password=not asked.is_fresh,
        danger=True,
    )


async def ask_reject(asked: Asked) -> Ask:
    """Return the dialog for rejections."""
    total = sum(one.row.amount_units for one in asked.refunds)
    return Ask(
        title="Give nothing back?",
        action=f"{_PAGE}/reject",
        back=_PAGE,
        button=f"Reject {counted(len(asked.refunds), 'refund')}, {usdc(total)} USDC",
        intro=f"{_REASON_IS_PRIVATE} You can still approve it later.",
        facts=_amounts(asked.refunds),
        fields=_fields(asked),
        reason="required",
        danger=True,
    )


async def ask_retry(asked: Asked) -> Ask:
    """Return the dialog for a failed refund to be sent again."""
    preview = await asked.preview_one()
    return Ask(
        title="Send this refund again?",
        action=f"{_PAGE}/retry",
        back=f"{_PAGE}?state=failed",
        button=f"Send {usdc(preview.sum_units)} USDC again",
        intro="It has the same nonce as before, so the token pays it at most once.",
        facts=[
            *_amounts(asked.refunds),
            *_sums(preview),
            ("Why it failed", asked.refunds[0].row.problem or "not known"),
        ],
        warnings=_warnings(preview),
        fields=_fields(asked),
        reason="optional",
    )


async def ask_take_back(asked: Asked) -> Ask:
    """Return the dialog that withdraws an approval."""
    asked.check_one()
    return Ask(
        title="Take the approval back?",
        action=f"{_PAGE}/take-back",
        back=f"{_PAGE}?state=moving",
        button="Take the approval back",
        intro="This is possible until the refund is signed, and costs nothing.",
        facts=_amounts(asked.refunds),
        fields=_fields(asked),
        reason="optional",
    )


DIALOGS: Mapping[str, Callable[[Asked], Awaitable[Ask]]] = {
    "approve": ask_approve,
    "redirect": ask_redirect,
    "reject": ask_reject,
    "retry": ask_retry,
    "take-back": ask_take_back,
}


def read_choices(form: MultiDict[str, str]) -> list[RefundChoice]:
    """Return the refunds that a form repeats; raises `WrongValue`."""
    texts = [value for name, value in form.items() if name.startswith(_FIELD)]
    found = [_CHOICE.fullmatch(text) for text in texts]
    if not 1 <= len(texts) <= PER_PAGE or None in found:
        raise WrongValue(f"Choose 1 to {PER_PAGE} refunds on the page of refunds.")
    return [
        RefundChoice(
            task_id=one[1],
            amount_units=int(one[2]),
            recipient=one[3],
            is_rejected=one[4] is not None,
        )
        for one in found
        if one is not None
    ]


def _fields(asked: Asked) -> Mapping[str, str]:
    repeated = {
        f"{_FIELD}{place}": f"{one.row.task_id} {one.row.amount_units} {one.row.recipient}"
        + (" rejected" if one.kind == "rejected" else "")
        for place, one in enumerate(asked.refunds)
    }
    return repeated | {"request": asked.key}


def _amounts(refunds: Sequence[OwedRefund]) -> list[tuple[str, str]]:
    return [
        (f"{one.row.slug} for {_recipient(one)}", f"{usdc(one.row.amount_units)} USDC")
        for one in refunds
    ]


def _recipient(refund: OwedRefund) -> str:
    """Return the address, or if unknown, the payer and the payment method."""
    row = refund.row
    if not refund.needs_address:
        return row.recipient
    return "nobody yet" if row.method is None else f"{row.payer}, paid by {row.method}"


def _sums(preview: ApprovalPreview) -> list[tuple[str, str]]:
    together, holds = f"{usdc(preview.sum_units)} USDC", preview.holds_units
    if not preview.has_key:
        return [("Together", together), ("The refund key", "none is set")]
    held = "not known now" if holds is None else f"{usdc(holds)} USDC"
    return [("Together", together), ("The refund key holds", held)]


def _warnings(preview: ApprovalPreview) -> list[str]:
    found = [_doubt(case) for case in preview.unproven]
    if not preview.has_key:
        found.append("Nothing is sent until GATEWAY_REFUND_KEY is set; the approval stays.")
    if preview.holds_units is not None and preview.holds_units < preview.sum_units:
        lacks = usdc(preview.sum_units - preview.holds_units)
        found.append(f"The refund key lacks {lacks} USDC: refunds that it cannot pay wait.")
    return found


def _doubt(case: RefundCase) -> str:
    if case.payment.method is not None:
        return (
            f"{case.recipient} proved nothing: task {case.task_id} was paid by "
            f"{case.payment.method}, and the proof or an operator named this address."
        )
    return (
        f"{case.recipient} proved nothing: it sent a plain transfer, and anybody who saw its hash "
        "could have used it. The money goes back to where it came from."
    )


def _billed(refunds: Sequence[OwedRefund]) -> list[str]:
    number = sum(one.may_be_billed for one in refunds)
    if not number:
        return []
    which = "The vendor" if len(refunds) == 1 else f"For {number:,} of these the vendor"
    return [f"{which} may have made the job, and may bill it."]


def _unproven_tick(preview: ApprovalPreview) -> str:
    return "I want to pay an address that proved nothing." if preview.unproven else ""
