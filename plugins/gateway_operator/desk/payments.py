"""Open payments, overpayments, and unused transfers."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import attrs

from gateway.domain import PaymentState
from gateway.domain.records import LOG_LAG_S
from gateway.errors import NotFound
from gateway.store.sql import Connection
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.sale_state import Shape
from gateway_operator.movements import last_restore
from gateway_operator.sql import payment_lists, seen_transfers
from gateway_operator.sql.payment_lists import PaymentRow
from gateway_operator.sql.seen_transfers import SeenTransfer
from gateway_operator.unused_transfers import UnusedTransfer

# The limit of each list.
_MAX = 100
# Seconds to wait for the chain.
_TIMEOUT_S = 2.0
# Late after the first; an error this long after the authorization ended. By then every log counts
# as shown, and even a payment that is checked once a minute is closed.
_LATE_S = 120.0
_WRONG_S = LOG_LAG_S + 300.0
# Another transfer of this amount so close to a payment looks like a duplicate.
_TWICE_S = 86_400.0

Why = Literal[
    "older than this database",
    "the restored copy forgot this sale",
    "not used yet",
    "paid too little",
    "paid twice",
    "paid too late",
    "paid to nobody",
]


@attrs.frozen(kw_only=True)
class OpenPayment:
    """A payment whose outcome is not known."""

    row: PaymentRow
    age_s: float
    shape: Shape

    # What will close it, as a sentence.
    closes: str


@attrs.frozen(kw_only=True)
class OverPayment:
    """A payment of more than the price, in units of 10⁻⁶ USDC."""

    row: PaymentRow
    over_units: int


@attrs.frozen(kw_only=True)
class PaymentsPage:
    """Open payments, and overpayments."""

    at: float
    open: Sequence[OpenPayment]
    over: Sequence[OverPayment]


@attrs.frozen(kw_only=True)
class Unused:
    """An unused transfer, and the likely reason."""

    tx_hash: str
    log_index: int
    block_number: int
    sender: str
    amount_units: int
    at: float
    age_s: float
    why: Why

    # For `paid twice`: the task bought for the same amount.
    task_id: str | None

    # None: not marked.
    mark: SeenTransfer | None

    # Payment methods of plugins with a payment within a day of it. One that takes USDC on the chain
    # may have received this transfer, unknown to the gateway.
    methods: Sequence[str]

    # Whether the refund key can give it back: no buyer can use it any more.
    can_refund: bool = False


@attrs.frozen(kw_only=True)
class UnusedPage:
    """The unused transfers as of the last search."""

    at: float

    # Unmarked first.
    transfers: Sequence[Unused]

    # Of unmarked transfers.
    unseen_units: int

    # When the last search ended; None: not yet.
    searched_at: float | None
    since: float | None

    problem: str | None

    # Small transfers, not listed.
    left_out: int


# What such a transfer bought is not known.
_NOT_LOST = ("older than this database", "the restored copy forgot this sale")


async def read_payments(desk: Desk) -> PaymentsPage:
    """Return open payments, oldest first, and overpayments, newest first."""
    rows, over = await desk.store.sum(payment_lists.open_and_over, _MAX)
    now = desk.now()
    return PaymentsPage(
        at=now,
        open=[_describe_open(row, now) for row in rows],
        over=[
            OverPayment(row=row, over_units=(row.paid_units or 0) - row.price_units) for row in over
        ],
    )


async def read_unused(desk: Desk, *, timeout_s: float = _TIMEOUT_S) -> UnusedPage:
    """Return the unused transfers of seven days.

    The first search takes longer than a page waits; a later page shows its result.
    """
    search = desk.unused
    await search.refresh(timeout_s)
    known, now = search.known, desk.now()
    prices = [one.endpoint.price_units for one in desk.catalog.everything()]
    found = await desk.store.sum(_payments_like, known)
    late_s = late_after_s(desk)
    transfers = [
        _describe_unused(one, now, facts, min(prices, default=0), late_s)
        for one, facts in zip(known, found, strict=True)
    ]
    if desk.refunds is not None:
        transfers = [attrs.evolve(one, can_refund=_is_lost(one, late_s)) for one in transfers]
    return UnusedPage(
        at=now,
        transfers=sorted(transfers, key=lambda one: one.mark is not None),
        unseen_units=sum(one.amount_units for one in transfers if one.mark is None),
        searched_at=search.searched_at,
        since=search.since,
        problem=search.problem,
        left_out=search.left_out,
    )


def late_after_s(desk: Desk) -> float:
    """Return the age in seconds from which no request can use a transfer."""
    return max(24.0, desk.settings.max_transfer_age_hours) * 3600


async def find_unused(desk: Desk, tx_hash: str, log_index: int) -> Unused:
    """Return one unused transfer, as of the last search; raises `NotFound`."""
    for one in (await read_unused(desk)).transfers:
        if (one.tx_hash, one.log_index) == (tx_hash, log_index):
            return one
    raise NotFound("This transfer was used since, or is older than 7 days.")


def _is_lost(one: Unused, late_s: float) -> bool:
    """Whether nothing can become of a transfer but a refund."""
    return one.mark is None and one.age_s > late_s and one.why not in _NOT_LOST


@attrs.frozen(kw_only=True)
class _Facts:
    """Stored facts about an unused transfer."""

    like: str | None
    has_paid: bool
    # Older than the database, and whether that is a restored copy, which may lack sales.
    is_older: bool
    is_restored: bool
    mark: SeenTransfer | None
    methods: Sequence[str]


def _payments_like(db: Connection, known: Sequence[UnusedTransfer]) -> list[_Facts]:
    marked = seen_transfers.find(db, {one.transfer.tx_hash for one in known})
    born = db.execute("SELECT value FROM meta WHERE key = 'born_at'").fetchone()
    born_at = 0.0 if born is None else float(born["value"])
    is_restored = last_restore(db) is not None
    times = [one.at for one in known]
    period = (min(times, default=0.0) - _TWICE_S, max(times, default=0.0) + _TWICE_S)
    by_methods = payment_lists.methods_between(db, *period) if times else []
    found = []
    for one in known:
        sent = one.transfer
        near = (one.at - _TWICE_S, one.at + _TWICE_S)
        found.append(
            _Facts(
                like=payment_lists.paid_alike(db, sent.sender, sent.amount_units, *near),
                is_older=one.is_older(born_at),
                is_restored=is_restored,
                has_paid=payment_lists.has_paid(db, sent.sender),
                mark=marked.get((sent.tx_hash, sent.log_index)),
                methods=sorted({name for at, name in by_methods if near[0] <= at <= near[1]}),
            )
        )
    return found


def _describe_unused(
    one: UnusedTransfer, now: float, facts: _Facts, cheapest_units: int, late_s: float
) -> Unused:
    sent, age_s = one.transfer, now - one.at
    return Unused(
        tx_hash=sent.tx_hash,
        log_index=sent.log_index,
        block_number=sent.block_number,
        sender=sent.sender,
        amount_units=sent.amount_units,
        at=one.at,
        age_s=age_s,
        why=_explain(sent.amount_units, age_s, facts, cheapest_units, late_s),
        task_id=facts.like,
        mark=facts.mark,
        methods=facts.methods,
    )


def _explain(
    amount_units: int, age_s: float, facts: _Facts, cheapest_units: int, late_s: float
) -> Why:
    """Return the likely reason; the sender's intention is not known."""
    if facts.is_older and not facts.is_restored:
        return "older than this database"
    if facts.is_older and amount_units >= cheapest_units:
        return "the restored copy forgot this sale"
    if amount_units < cheapest_units:
        return "paid too little"
    if facts.like is not None:
        return "paid twice"
    if age_s < late_s:
        return "not used yet"
    return "paid too late" if facts.has_paid else "paid to nobody"


def _describe_open(row: PaymentRow, now: float) -> OpenPayment:
    age_s = now - row.created_at
    is_wrong = row.valid_before is not None and now > row.valid_before + _WRONG_S
    shape: Shape = "bad" if is_wrong else "warn" if age_s > _LATE_S else "busy"
    return OpenPayment(row=row, age_s=age_s, shape=shape, closes=_describe_closing(row, now))


def _describe_closing(row: PaymentRow, now: float) -> str:
    if row.method is not None:
        return _describe_closing_by_method(row.method, row.state)
    begun = (
        "It is signed and may be on-chain: its event closes it"
        if row.state == PaymentState.SETTLING
        else "It is checked, and nothing was sent yet: its settlement closes it"
    )
    if row.valid_before is None:
        return f"{begun}."
    ends = datetime.fromtimestamp(row.valid_before, UTC).strftime("%H:%M:%S")
    if now <= row.valid_before:
        return f"{begun}, or the end of its authorization at {ends} UTC."
    last = datetime.fromtimestamp(row.valid_before + LOG_LAG_S, UTC).strftime("%H:%M:%S")
    return (
        f"Its authorization ended at {ends} UTC. Its event closes it as paid, an unused nonce as "
        f"never paid. A used nonce without an event closes it as never paid after {last} UTC."
    )


def _describe_closing_by_method(method: str, state: str) -> str:
    begun = (
        f"{method} was asked for the money and has not reported the outcome: it is asked again "
        "until it does"
        if state == PaymentState.SETTLING
        else f"Its proof is stored, and {method} was not asked yet: its answer closes it"
    )
    return f"{begun}. While no plugin for {method} is installed, it stays open."
