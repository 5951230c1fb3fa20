"""The data of the page Refunds."""

from collections.abc import Mapping, Sequence
from functools import partial

import attrs

from gateway.domain import NO_ADDRESS, Decision, Flow, usdc
from gateway.domain.eip3009 import BALANCE_OF, word
from gateway.domain.failure_reasons import FailureReason
from gateway.errors import NotFound, WrongValue
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.last_seen import Seen
from gateway_operator.sql import refund_lists
from gateway_operator.sql.refund_lists import KINDS, Kind, KindCount, RefundRow

# Also the limit of decisions at once.
PER_PAGE = 50

_LEAVE_JOB_OPEN = frozenset(reason for reason in FailureReason if reason.leaves_job_open)


@attrs.frozen(kw_only=True)
class OwedRefund:
    """One refund with its possible decisions."""

    row: RefundRow
    kind: Kind

    # The vendor's message if known, else the gateway's sentence.
    why: str
    is_vendors_message: bool

    # Seconds.
    age_s: float
    may_be_billed: bool

    # Whether the recipient is proven to be the payer.
    is_proven: bool
    can_approve: bool
    can_reject: bool
    can_retry: bool
    can_take_back: bool

    # Refund another address than the payer's; not after signing.
    can_redirect: bool

    # Whether the operator must enter an address first.
    needs_address: bool

    @property
    def decisions(self) -> list[tuple[str, str]]:
        """Return the possible decisions with their labels, the likeliest first."""
        every = (
            (self.can_retry, "retry", "Send again"),
            (self.can_approve, "approve", "Approve"),
            (self.can_redirect and self.needs_address, "redirect", "Name an address"),
            (self.can_take_back, "take-back", "Take back"),
            (self.can_reject, "reject", "Reject"),
            (self.can_redirect and not self.needs_address, "redirect", "Other address"),
        )
        return [(what, words) for is_possible, what, words in every if is_possible]


@attrs.frozen(kw_only=True)
class RefundKey:
    """The key that sends refunds, with its last known balance."""

    address: str

    # Units of 10⁻⁶ USDC.
    holds: Seen[int]


@attrs.frozen(kw_only=True)
class RefundsPage:
    """One tab of refunds, and the sums above it. Money is in units of 10⁻⁶ USDC."""

    # Unix seconds.
    at: float
    kind: Kind
    refunds: Sequence[OwedRefund]

    # `before` of the next page; None on the last.
    next_before: int | None
    counts: Mapping[Kind, KindCount]

    # Neither paid nor rejected.
    owed_units: int

    key: RefundKey | None
    is_automatic: bool

    # For refunds without an approval: the daily cap, and what is left of it.
    cap_units: int
    cap_left_units: int

    @property
    def lacks_units(self) -> int | None:
        """The USDC that the key lacks for all refunds owed; None: not known."""
        if self.key is None or self.key.holds.value is None:
            return None
        return max(0, self.owed_units - self.key.holds.value)


async def read_refunds(desk: Desk, kind: str, before: int | None = None) -> RefundsPage:
    """Return a page of refunds of a kind; `before` is the previous page's `next_before`.

    Waits at most two seconds for the chain. Raises `WrongValue` for an unknown kind.
    """
    known = parse_kind(kind)
    is_automatic = desk.settings.refunds_automatically
    # One row more shows whether there is a next page.
    rows = await desk.store.sum(
        partial(refund_lists.find_refunds, is_automatic=is_automatic), known, before, PER_PAGE + 1
    )
    counts, cap_used = await desk.shared.get("refund sums", lambda: _read_sums(desk))
    now, cap = desk.now(), usdc(desk.settings.refund_daily_cap)
    shown = rows[:PER_PAGE]
    return RefundsPage(
        at=now,
        kind=known,
        refunds=[_describe(row, known, now, is_automatic=is_automatic) for row in shown],
        next_before=shown[-1].payment_id if len(rows) > PER_PAGE else None,
        counts=counts,
        owed_units=sum(counts[each].units for each in ("undecided", "moving", "failed")),
        key=await _ask_key(desk),
        is_automatic=is_automatic,
        cap_units=cap,
        cap_left_units=max(0, cap - cap_used),
    )


async def find_refunds(desk: Desk, task_ids: Sequence[str]) -> list[OwedRefund]:
    """Return the refunds of these tasks, in order.

    Raises `WrongValue` without tasks or for too many, and `NotFound` for one without a refund.
    """
    if not 1 <= len(task_ids) <= PER_PAGE:
        raise WrongValue(f"Choose 1 to {PER_PAGE} refunds: a page acts on those that it shows.")
    is_automatic = desk.settings.refunds_automatically
    rows = await desk.store.sum(
        partial(refund_lists.find_chosen, is_automatic=is_automatic), list(task_ids)
    )
    if set(task_ids) - {row.task_id for row in rows}:
        raise NotFound("Nothing is owed for one of these tasks.")
    return [_describe(row, row.kind, desk.now(), is_automatic=is_automatic) for row in rows]


def parse_kind(text: str) -> Kind:
    """Return the kind of this name; raises `WrongValue`."""
    for kind in KINDS:
        if text == kind:
            return kind
    raise WrongValue(f"Refunds are {', '.join(KINDS)}.")


def may_be_billed(
    details: str | None, error: str | None, *, has_job: bool, cost_micros: int | None
) -> bool:
    """Whether a vendor may have made and billed the job of a failed task."""
    was_made = (error or "").startswith("The result was made")
    is_open = details in _LEAVE_JOB_OPEN or was_made or bool(cost_micros)
    return is_open or (has_job and details == FailureReason.PROVIDER_ERROR)


async def _read_sums(desk: Desk) -> tuple[Mapping[Kind, KindCount], int]:
    return await desk.store.sum(
        partial(refund_lists.sums, is_automatic=desk.settings.refunds_automatically), desk.now()
    )


async def _ask_key(desk: Desk) -> RefundKey | None:
    if desk.refunds is None:
        return None
    address = desk.refunds.address
    question = BALANCE_OF + word(address)
    holds = await desk.last_seen.ask(f"usdc {address}", lambda: desk.chain.call_uint(question))
    return RefundKey(address=address, holds=holds)


def _describe(row: RefundRow, kind: Kind, now: float, *, is_automatic: bool) -> OwedRefund:
    is_unsigned, needs_address = row.sender is None, row.recipient == NO_ADDRESS
    is_proven = row.payer_proven or (row.method is None and row.flow == Flow.X402)
    is_approved = row.decision == Decision.APPROVED
    is_sent_by_settings = is_automatic and is_proven
    return OwedRefund(
        row=row,
        kind=kind,
        why=row.vendor_message or row.error or row.details or "",
        is_vendors_message=bool(row.vendor_message),
        age_s=now - row.created_at,
        may_be_billed=may_be_billed(
            row.details, row.error, has_job=row.has_job, cost_micros=row.cost_micros
        ),
        is_proven=is_proven,
        can_approve=kind in ("undecided", "rejected") and not needs_address,
        can_reject=kind in ("undecided", "failed") or (kind == "moving" and is_unsigned),
        can_retry=kind == "failed",
        can_take_back=kind == "moving" and is_unsigned and is_approved and not is_sent_by_settings,
        can_redirect=kind in ("undecided", "rejected", "failed") and is_unsigned,
        needs_address=needs_address,
    )
