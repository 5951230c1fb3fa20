"""What the operator does about money from the command line: refunds, and unclaimed transfers.

Works beside a running gateway: the database decides every race, and a refund's nonce lets the
token pay it once.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import attrs

from gateway.chain.client import Web3Chain
from gateway.chain.keys import load_key
from gateway.contracts import Chain, PluginContext, Store
from gateway.domain import Decision, MinedTransfer, PaymentState, RefundCase
from gateway.errors import RefundRefused, SettingsError
from gateway.payments import Refunds
from gateway.payments.cutoff import last_block_before
from gateway.settings import Settings
from gateway.store import SqliteStore
from gateway.store.data_folder import check_network, enter_data, existing_database
from gateway.store.migrations import migrations

OPEN = (PaymentState.REFUND_DUE, PaymentState.REFUNDING, PaymentState.REFUND_FAILED)
DECIDABLE = (PaymentState.REFUND_DUE, PaymentState.REFUND_FAILED)
_LOOK_S = 1.0  # half of Base's block time
_RANGE = 2_000  # blocks a query; public endpoints refuse more


@attrs.frozen(kw_only=True)
class Session:
    """An open store and chain, and who sends refunds."""

    settings: Settings
    store: Store
    chain: Chain
    refunds: Refunds | None  # None without a refund key

    def sender(self) -> Refunds:
        """Return who sends refunds; raises `SettingsError` without a key."""
        if self.refunds is None:
            raise SettingsError(
                "GATEWAY_REFUND_KEY is not set. It is the private key that sends refunds: it "
                "holds USDC for them and a little ETH."
            )
        return self.refunds


@contextlib.asynccontextmanager
async def open_session(settings: Settings) -> AsyncIterator[Session]:
    """Open the gateway's own database and chain; raises `SettingsError` where there is none."""
    enter_data(settings)
    path = existing_database(settings)
    secret = load_key(settings, "refund")
    if secret is not None and secret == load_key(settings, "settlement"):
        raise SettingsError(
            "GATEWAY_REFUND_KEY is the settlement key. Refunds need a key of their own."
        )
    chain = Web3Chain(settings)
    _check_version(path)
    async with SqliteStore(path) as store:
        await check_network(settings, store)
        context = PluginContext(settings=settings, chain=chain, journal=store, now=time.time)
        refunds = Refunds(store, context, secret) if secret is not None else None
        try:
            yield Session(settings=settings, store=store, chain=chain, refunds=refunds)
        finally:
            await chain.close()


def _check_version(path: Path) -> None:
    """Refuse an older database: a gateway that runs on it would lose its tables under its feet."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as error:
        raise SettingsError(f"The database {path} cannot be opened ({error}).") from None
    if version < migrations()[-1][0]:
        raise SettingsError("The database is of an older version. Start this gateway once first.")


async def decide(
    till: Session, task_ids: Sequence[str], decision: Decision, *, recipient: str | None, note: str
) -> list[RefundCase]:
    """Note one decision about several refunds; raises `RefundRefused` at the first that cannot."""
    ledger, now = till.store.refunds, time.time()
    for task_id in task_ids:  # all or none: what is approved is sent by the running gateway
        case = await ledger.case(task_id)
        if case is None:
            raise RefundRefused(f"Nothing is owed for task {task_id}.")
        if case.payment.state not in DECIDABLE:
            raise RefundRefused(f"The refund of task {task_id} is {case.payment.state} already.")
        if case.sender is not None and recipient not in (None, case.recipient):
            raise RefundRefused(f"The refund of task {task_id} was signed for {case.recipient}.")
    return [
        await ledger.decide(task_id, decision, recipient=recipient, note=note, now=now)
        for task_id in task_ids
    ]


async def payable(till: Session, task_ids: Sequence[str]) -> list[RefundCase]:
    """Return the refunds to send: those named, or every one that is approved or on its way."""
    if not task_ids:
        cases = await till.store.refunds.cases(PaymentState.REFUND_DUE, PaymentState.REFUNDING)
        return [case for case in cases if till.sender().may_send(case)]
    found = [await till.store.refunds.case(task_id) for task_id in task_ids]
    for task_id, case in zip(task_ids, found, strict=True):
        if case is None:
            raise RefundRefused(f"Nothing is owed for task {task_id}.")
    return [case for case in found if case is not None]


async def preview(
    till: Session, cases: Sequence[RefundCase]
) -> list[tuple[RefundCase, str | None]]:
    """Return each refund with what keeps it from being sent now; sends nothing."""
    sender = till.sender()
    return [(case, await sender.problem_of(case)) for case in cases]


async def pay(till: Session, cases: Sequence[RefundCase], *, wait_s: float) -> list[RefundCase]:
    """Send refunds and wait until each is on-chain or stuck, at most `wait_s` seconds."""
    sender, ledger = till.sender(), till.store.refunds
    task_ids = [case.task_id for case in cases]
    deadline = time.monotonic() + wait_s
    while True:
        await sender.sweep(only=task_ids)
        shown = [case for task_id in task_ids if (case := await ledger.case(task_id))]
        waits = any(_is_moving(case) for case in shown)
        if not waits or time.monotonic() > deadline:
            return shown
        await asyncio.sleep(_LOOK_S)


def _is_moving(case: RefundCase) -> bool:
    """Whether looking again may change it: on its way, or not sent for no known reason."""
    state = case.payment.state
    is_due = state is PaymentState.REFUND_DUE and case.problem is None
    return is_due or state is PaymentState.REFUNDING


async def unclaimed_transfers(
    till: Session, *, days: float, hours: float | None
) -> list[MinedTransfer]:
    """Return transfers to the wallet of the last `days`, older than `hours`, that paid nothing.

    None for `hours` means those that are too old to pay for anything any more.
    Looks only below the safe head: what is listed will not be reorganised away.
    """
    head, now = await till.chain.safe_head(), time.time()
    if hours is None:
        hours = max(24.0, till.settings.max_transfer_age_hours)
    first = await last_block_before(till.chain, now - days * 86_400) + 1
    last = min(head.number, await last_block_before(till.chain, now - hours * 3600))
    wallet, found = till.settings.wallet_key, list[MinedTransfer]()
    for start in range(first, last + 1, _RANGE):
        transfers = await till.chain.transfer_logs(
            wallet, from_block=start, to_block=min(start + _RANGE - 1, last)
        )
        paying = [each for each in transfers if each.amount_units and each.sender != wallet]
        found += await till.store.refunds.unclaimed(paying)
    return found
