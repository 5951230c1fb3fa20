"""The list of all payments, and the page of one buyer."""

from collections.abc import Callable, Sequence

import attrs

from gateway.domain import Decision, PaymentState, TaskStatus
from gateway.errors import NotFound, WrongValue
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.payments import Unused, read_unused
from gateway_operator.desk.sale_state import Shape
from gateway_operator.desk.tasks import read_day
from gateway_operator.sql import all_payments
from gateway_operator.sql.all_payments import BuyerGroup, ListedPayment, PaymentFilter

PER_PAGE = 50
STATES = tuple(str(state) for state in PaymentState)

_MAX_CHARS = 200
_MAX_ID = 2**63 - 1
_SHAPES: dict[str, tuple[Shape, str]] = {
    PaymentState.RESERVED: ("busy", "open"),
    PaymentState.SETTLING: ("busy", "settling"),
    PaymentState.SETTLED: ("ok", "paid"),
    PaymentState.RELEASED: ("off", "never paid"),
    PaymentState.REFUND_DUE: ("warn", "refund owed"),
    PaymentState.REFUNDING: ("busy", "refund on its way"),
    PaymentState.REFUNDED: ("off", "refunded"),
    PaymentState.REFUND_FAILED: ("bad", "refund failed"),
}
_OWED = (PaymentState.REFUND_DUE, PaymentState.REFUNDING, PaymentState.REFUND_FAILED)


@attrs.frozen(kw_only=True)
class DescribedPayment:
    """One payment with its state as shape and words."""

    row: ListedPayment
    shape: Shape
    words: str


@attrs.frozen(kw_only=True)
class PaymentList:
    """A page of payments, newest first."""

    # Unix seconds.
    at: float
    payments: Sequence[DescribedPayment]

    # `before` of the next page; None on the last.
    next_before: int | None


@attrs.frozen(kw_only=True)
class BuyerSum:
    """A number of payments and their sum, in units of 10⁻⁶ USDC."""

    count: int
    units: int


@attrs.frozen(kw_only=True)
class Buyer:
    """Purchases of one payer, with failures and refunds. Times are Unix seconds."""

    payer: str
    bought: BuyerSum
    failed: BuyerSum
    refunded: BuyerSum
    owed: BuyerSum
    never_paid: int
    first_at: float | None
    last_at: float | None

    # Transfers of the last seven days that bought nothing.
    unused: Sequence[Unused]

    # When the chain was searched last (None: not yet), and why not since.
    searched_at: float | None
    problem: str | None

    newest: PaymentList

    @property
    def unused_units(self) -> int:
        """The sum of the unused transfers."""
        return sum(one.amount_units for one in self.unused)


async def list_payments(desk: Desk, wanted: PaymentFilter) -> PaymentList:
    """Return a page of payments."""
    rows = await desk.store.sum(all_payments.find_payments, wanted, PER_PAGE + 1)
    shown = rows[:PER_PAGE]
    return PaymentList(
        at=desk.now(),
        payments=[describe_payment(row) for row in shown],
        next_before=shown[-1].payment_id if len(rows) > PER_PAGE else None,
    )


async def read_buyer(desk: Desk, payer: str) -> Buyer:
    """Return one payer's purchases; raises `NotFound` if it never paid anything."""
    wanted = make_payment_filter(payer=payer)
    if not wanted.payer:
        raise NotFound("Name the payer: an address, or a payment method's name for it.")
    groups: list[BuyerGroup] = await desk.buyers.get(
        wanted.payer, lambda: desk.store.sum(all_payments.sum_buyer, wanted.payer)
    )
    found = await read_unused(desk)
    unused = [one for one in found.transfers if one.sender == wanted.payer.lower()]
    if not groups and not unused:
        raise NotFound("No payment and no unused transfer is of this payer.")
    return Buyer(
        payer=wanted.payer,
        bought=_sum(groups, lambda one: one.state not in ("reserved", "settling", "released")),
        failed=_sum(groups, lambda one: one.status == TaskStatus.FAILED),
        refunded=_sum_refunds(groups, lambda one: one.state == PaymentState.REFUNDED),
        owed=_sum_refunds(groups, _is_owed),
        never_paid=sum(one.payments for one in groups if one.state == PaymentState.RELEASED),
        first_at=min((one.first_at for one in groups), default=None),
        last_at=max((one.last_at for one in groups), default=None),
        unused=unused,
        searched_at=found.searched_at,
        problem=found.problem,
        newest=await list_payments(desk, wanted),
    )


def make_payment_filter(
    *, state: str = "", payer: str = "", day: str = "", q: str = "", before: str = ""
) -> PaymentFilter:
    """Return the filter of a form's fields; raises `WrongValue`.

    `day` is a day in UTC such as `2026-01-31`.
    """
    if state and state not in STATES:
        raise WrongValue(f"A payment's state is one of {', '.join(STATES)}.")
    if max(map(len, (payer, q, before))) > _MAX_CHARS:
        raise WrongValue(f"A filter has at most {_MAX_CHARS} characters.")
    is_whole = before.isascii() and before.isdigit() and int(before) <= _MAX_ID
    if before and not is_whole:
        raise WrongValue("before is the number of a payment.")
    return PaymentFilter(
        state=state,
        payer=payer.strip(),
        day=read_day(day) if day else None,
        search=q.strip(),
        before=int(before) if before else None,
    )


def describe_payment(row: ListedPayment) -> DescribedPayment:
    """Return a payment as a list shows it."""
    shape, words = _SHAPES[row.state]
    if row.state == PaymentState.REFUND_FAILED and row.decision == Decision.REJECTED:
        shape, words = "off", "refund rejected"
    return DescribedPayment(row=row, shape=shape, words=words)


def _is_owed(one: BuyerGroup) -> bool:
    is_rejected = one.state == PaymentState.REFUND_FAILED and one.decision == Decision.REJECTED
    return one.state in _OWED and not is_rejected


def _sum(groups: Sequence[BuyerGroup], belongs: Callable[[BuyerGroup], bool]) -> BuyerSum:
    mine = [one for one in groups if belongs(one)]
    return BuyerSum(
        count=sum(one.payments for one in mine), units=sum(one.paid_units for one in mine)
    )


def _sum_refunds(groups: Sequence[BuyerGroup], belongs: Callable[[BuyerGroup], bool]) -> BuyerSum:
    mine = [one for one in groups if belongs(one)]
    return BuyerSum(
        count=sum(one.payments for one in mine), units=sum(one.refund_units for one in mine)
    )
