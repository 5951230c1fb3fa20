"""An open store and chain for one command, and what the operator decides about refunds.

A command works beside a running gateway: the database decides every race, and the nonce of a
refund's authorization lets the token pay it once only.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import attrs

from gateway.chain.client import Web3Chain
from gateway.chain.keys import load_key, load_settlement_keys
from gateway.contracts import Chain, PluginContext, Store
from gateway.domain import Decision, PaymentState, RefundCase
from gateway.errors import RefundRefused, SettingsError
from gateway.payments import Refunds
from gateway.settings import Settings
from gateway.store import SqliteStore
from gateway.store.data_folder import check_network, enter_data, existing_database
from gateway.store.migrations import migrations

OPEN = (PaymentState.REFUND_DUE, PaymentState.REFUNDING, PaymentState.REFUND_FAILED)
DECIDABLE = (PaymentState.REFUND_DUE, PaymentState.REFUND_FAILED)
# Half of Base's block time.
_LOOK_S = 1.0


@attrs.frozen(kw_only=True)
class Session:
    """An open store and chain, and the sender of refunds.

    `refunds` is None where no refund key is set.
    """

    settings: Settings
    store: Store
    chain: Chain
    refunds: Refunds | None

    def sender(self) -> Refunds:
        """Return the sender of refunds; raises `SettingsError` without a key."""
        if self.refunds is None:
            raise SettingsError(
                "GATEWAY_REFUND_KEY is not set. It is the private key that sends refunds: it "
                "holds USDC for them and a little ETH."
            )
        return self.refunds


@contextlib.asynccontextmanager
async def open_session(settings: Settings) -> AsyncIterator[Session]:
    """Open the gateway's own database and chain.

    Raises `SettingsError` where the database is missing, older than this version or of another
    network, and where one key would settle and refund.
    """
    enter_data(settings)
    path = existing_database(settings)
    secret = load_key(settings, "refund")
    if secret is not None and secret in load_settlement_keys(settings):
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
    """Refuse an older database: migrating it would change tables under a gateway that runs."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as error:
        raise SettingsError(f"The database {path} cannot be opened ({error}).") from None
    if version < migrations()[-1][0]:
        raise SettingsError("The database is of an older version. Start this gateway once first.")


async def decide_refunds(
    session: Session,
    task_ids: Sequence[str],
    decision: Decision,
    *,
    recipient: str | None,
    note: str,
) -> list[RefundCase]:
    """Note one decision about several refunds.

    Raises `RefundRefused` for the first refund that cannot be decided about; then no decision is
    noted.
    """
    ledger, now = session.store.refunds, time.time()
    # All refunds are looked at before the first is decided: the running gateway sends an approved
    # refund at once.
    for task_id in task_ids:
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


async def find_payable(session: Session, task_ids: Sequence[str]) -> list[RefundCase]:
    """Return the refunds of these tasks; without tasks, all that are approved or on their way.

    Raises `RefundRefused` for a task without a refund.
    """
    if not task_ids:
        cases = await session.store.refunds.cases(PaymentState.REFUND_DUE, PaymentState.REFUNDING)
        return [case for case in cases if session.sender().may_send(case)]
    found = [await session.store.refunds.case(task_id) for task_id in task_ids]
    for task_id, case in zip(task_ids, found, strict=True):
        if case is None:
            raise RefundRefused(f"Nothing is owed for task {task_id}.")
    return [case for case in found if case is not None]


async def preview_refunds(
    session: Session, cases: Sequence[RefundCase]
) -> list[tuple[RefundCase, str | None]]:
    """Return each refund with the problem that keeps it from being sent now; sends nothing."""
    sender = session.sender()
    return [(case, await sender.problem_of(case)) for case in cases]


async def pay_refunds(
    session: Session, cases: Sequence[RefundCase], *, wait_s: float
) -> list[RefundCase]:
    """Send refunds, and wait `wait_s` seconds at most until each is on-chain or has a problem."""
    sender, ledger = session.sender(), session.store.refunds
    task_ids = [case.task_id for case in cases]
    deadline = time.monotonic() + wait_s
    while True:
        await sender.sweep(only=task_ids)
        shown = [case for task_id in task_ids if (case := await ledger.case(task_id))]
        if not any(_is_moving(case) for case in shown) or time.monotonic() > deadline:
            return shown
        await asyncio.sleep(_LOOK_S)


def _is_moving(case: RefundCase) -> bool:
    """Whether a later look may differ: the refund is on its way, or unsent without a problem."""
    state = case.payment.state
    is_due = state is PaymentState.REFUND_DUE and case.problem is None
    return is_due or state is PaymentState.REFUNDING
