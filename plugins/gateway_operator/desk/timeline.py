"""The timeline of a task."""

from collections.abc import Iterator, Sequence

import attrs

from gateway.domain import Flow, PaymentState, TaskStatus
from gateway_operator.desk.attempts import ShownAttempt, list_attempts
from gateway_operator.desk.sale_state import Shape
from gateway_operator.desk.wording import usdc
from gateway_operator.sql.task_detail import PaymentChange, SentTransaction, TaskFacts

_ACTIONS = {
    "refund.approve": "Refund approved",
    "refund.reject": "Refund rejected",
    "refund.retry": "Refund to be sent again",
    "refund.take_back": "Approval taken back",
    "output.look": "Outputs viewed",
    "prompt.look": "Prompt viewed",
}
# How attempts ended without ending the task.
_ENDS: dict[str, tuple[Shape, str]] = {
    "failed": ("warn", "failed"),
    "put_off": ("off", "put off"),
    "stopped": ("off", "ended by the stop of the gateway"),
    "died": ("warn", "broken off"),
}
_DOORS = {"page": "on the page", "api": "by the JSON API", "cli": "on the command line"}


@attrs.frozen(kw_only=True)
class Moment:
    """One event (Unix seconds)."""

    at: float
    shape: Shape
    title: str
    text: str = ""

    reason: str = ""

    tx_hash: str = ""


def make_timeline(facts: TaskFacts) -> list[Moment]:
    """Return the timeline, oldest first."""
    # The sort is stable: a failure stays before its refund, which has the same time.
    found = [
        *_purchase_moments(facts),
        *_transaction_moments(facts),
        *_work_moments(facts),
        *_payment_moments(facts),
        *_action_moments(facts),
    ]
    return sorted(found, key=lambda moment: moment.at)


def _purchase_moments(facts: TaskFacts) -> Iterator[Moment]:
    for change in facts.changes[:1]:
        flow = facts.row.flow
        yield Moment(
            at=change.at,
            shape="busy",
            title=f"Bought by {'direct transfer' if flow == Flow.DIRECT else flow}",
            text=f"{facts.row.slug} for {usdc(facts.row.price_units)} USDC",
        )


def _payment_moments(facts: TaskFacts) -> Iterator[Moment]:
    for change in facts.changes:
        if (moment := _describe_change(facts, change)) is not None:
            yield moment


# Shape, title, text, transaction.
_Texts = tuple[Shape, str, str, str | None]


def _describe_change(facts: TaskFacts, change: PaymentChange) -> Moment | None:
    row, own = facts.row, facts.own
    owed, recipient, problem = usdc(row.refund_units or 0), own.recipient, own.problem or ""
    texts: dict[str, _Texts] = {
        **_payment_texts(facts),
        PaymentState.REFUND_DUE: ("warn", f"Refund of {owed} USDC owed", problem, None),
        PaymentState.REFUNDING: ("busy", f"Refund signed to {recipient}", "", None),
        PaymentState.REFUNDED: ("ok", f"Refunded: {owed} USDC to {recipient}", "", own.refund_tx),
        PaymentState.REFUND_FAILED: ("bad", "Refund not sent", problem, None),
    }
    if change.state not in texts:
        return None
    shape, title, text, tx_hash = texts[change.state]
    return Moment(at=change.at, shape=shape, title=title, text=text, tx_hash=tx_hash or "")


def _payment_texts(facts: TaskFacts) -> dict[str, _Texts]:
    row, own = facts.row, facts.own
    paid = usdc(row.paid_units if row.paid_units is not None else row.price_units)
    if row.method is not None:
        answer = own.answer or ""
        return {
            PaymentState.SETTLING: ("busy", f"Asked {row.method} for the money", "", None),
            PaymentState.SETTLED: ("ok", f"Paid: {row.method} took {paid} USDC", answer, None),
            PaymentState.RELEASED: ("off", f"Never paid: {row.method} refused", answer, None),
        }
    proven = "It is proven that no transfer happened or can happen."
    return {
        PaymentState.SETTLING: ("busy", "Settlement signed", "", None),
        PaymentState.SETTLED: ("ok", f"Paid: {paid} USDC seen on-chain", "", own.paid_tx),
        PaymentState.RELEASED: ("off", "Never paid", proven, None),
    }


def _transaction_moments(facts: TaskFacts) -> Iterator[Moment]:
    for sent in facts.transactions:
        is_refund = sent.signer == facts.own.refund_sender
        what = "Refund" if is_refund else "Settlement"
        text = f"with nonce {sent.nonce} of {sent.signer}"
        title = f"{what} sent"
        yield Moment(at=sent.sent_at, shape="busy", title=title, text=text, tx_hash=sent.tx_hash)
        if sent.mined_at is not None:
            yield _describe_mined(sent, what)


def _describe_mined(sent: SentTransaction, what: str) -> Moment:
    is_reverted = sent.succeeded == 0
    # Block times are whole seconds, so one may precede its transaction's sending.
    mined_at = max(sent.mined_at or sent.sent_at, sent.sent_at)
    return Moment(
        at=mined_at,
        shape="bad" if is_reverted else "ok",
        title=f"{what} {'reverted' if is_reverted else 'mined'}",
        text="gas not known" if sent.gas_wei is None else _describe_gas(sent),
        tx_hash=sent.tx_hash,
    )


def _describe_gas(sent: SentTransaction) -> str:
    wei = (sent.gas_wei or 0) + (sent.l1_fee_wei or 0)
    return f"gas {wei / 10**12:,.2f} µETH"


def _work_moments(facts: TaskFacts) -> Iterator[Moment]:
    attempts = list_attempts(facts)
    yield from _describe_unrecorded(facts, attempts)
    for place, one in enumerate(attempts):
        is_again = place > 0 and attempts[place - 1].number == one.number
        is_last = place >= len(facts.ended_attempts)
        yield from _describe_attempt(one, is_again=is_again, is_last=is_last)
    row, own = facts.row, facts.own
    if own.sent_at is not None:
        job = f"job {facts.job_id}" if facts.job_id else ""
        yield Moment(
            at=own.sent_at, shape="busy", title=f"Sent to {row.provider or 'the vendor'}", text=job
        )
    if row.completed_at is None:
        return
    if row.status == TaskStatus.COMPLETED:
        outputs = len(facts.outputs)
        text = f"{outputs} output{'' if outputs == 1 else 's'}"
        yield Moment(at=row.completed_at, shape="ok", title="Completed", text=text)
    elif row.status == TaskStatus.FAILED:
        title = f"Failed after {row.attempt} attempt{'' if row.attempt == 1 else 's'}"
        text = row.vendor_message or row.error or row.details or ""
        yield Moment(at=row.completed_at, shape="bad", title=title, text=text)


def _describe_unrecorded(facts: TaskFacts, attempts: Sequence[ShownAttempt]) -> Iterator[Moment]:
    """Show the begin of a task's work if the first attempt is not recorded."""
    started_at = facts.own.started_at
    begun = {one.number for one in attempts if one.begun_at is not None}
    if started_at is None or not facts.row.attempt or 1 in begun:
        return
    missing = sorted(set(range(1, facts.row.attempt + 1)) - {one.number for one in attempts})
    text = f"No record of attempt{'' if len(missing) == 1 else 's'} {', '.join(map(str, missing))}"
    yield Moment(at=started_at, shape="busy", title="Attempt 1 begun", text=text if missing else "")


def _describe_attempt(one: ShownAttempt, *, is_again: bool, is_last: bool) -> Iterator[Moment]:
    """Show an attempt's begin, and its end unless that is the task's."""
    name = f"Attempt {one.number}"
    if one.begun_at is not None:
        title = f"{name} begun{' again' if is_again else ''}"
        text = f"on {one.node}" if one.node else ""
        yield Moment(at=one.begun_at, shape="busy", title=title, text=text)
    if not is_last and one.ended_at is not None:
        shape, ending = _ENDS.get(one.outcome, ("off", one.outcome))
        words = (one.details or "").replace("_", " ")
        text = ": ".join(part for part in (words, one.message) if part)
        text += f" ({one.times} times)" if one.times > 1 else ""
        yield Moment(at=one.ended_at, shape=shape, title=f"{name} {ending}", text=text.strip())


def _action_moments(facts: TaskFacts) -> Iterator[Moment]:
    for action in facts.actions:
        door = _DOORS.get(action.actor.door, "by the gateway")
        yield Moment(
            at=action.at,
            shape="off",
            title=_ACTIONS.get(action.action, action.action),
            text=f"by {action.actor.name} {door}",
            reason=action.reason or "",
        )
