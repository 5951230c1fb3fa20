"""Pays refunds that are approved or automatic, each exactly once.

A refund is an EIP-3009 authorization by the refund key, with a nonce derived from the payment. The
token accepts a nonce once, so no crash, second process or restored backup can pay a refund twice.
If the outcome is unknown, the token's own events close the refund.
"""

from collections.abc import Callable, Collection, Sequence

import attrs
import structlog
from eth_hash.auto import keccak

from gateway.chain.signer import Signer
from gateway.chain.smart_wallets import KEY_GAS, key_call, sign_authorization
from gateway.chain.transactions import Call
from gateway.concurrency.periodic import Periodic, always
from gateway.contracts import (
    CallReverted,
    Chain,
    GasOfKey,
    PluginContext,
    SignedTransaction,
    UnsignedTransaction,
)
from gateway.domain import Authorization, Block, Decision, Payment, PaymentState, RefundCase, usdc
from gateway.domain.eip3009 import BALANCE_OF, Network, word
from gateway.errors import ChainUnavailable, RefundRefused
from gateway.payments.nonce_events import NonceEvent, event_in, find_event, is_spent
from gateway.store import SqlStore

# Logs from before the refund was due are searched too: a database since restored may have sent it.
_SENT_BEFORE_S = 86_400.0
# Nodes of the previous release search for the refund from this many blocks before the head on.
_OLDER_NODES_BLOCKS = 30_000

# A refund does not expire.
_NEVER = 2**256 - 1

_log = structlog.get_logger()


def refund_nonce(payment: Payment, network: Network) -> str:
    """Return the nonce of a payment's refund, which is the same in every copy of the database.

    It hashes the chain, the token, and the authorization's payer and nonce, or else the transaction
    that paid. The log index is left out, because a reorganisation may change it.
    """
    if payment.paid_tx is None:
        raise ValueError("nothing was paid")
    paid = word(payment.paid_tx)
    if payment.authorization is not None:
        paid = word(payment.payer) + word(payment.authorization.nonce)
    return "0x" + keccak(b"refund" + network.domain_separator + paid).hex()


def sign_refund(secret: bytes, sender: str, case: RefundCase, network: Network) -> Authorization:
    """Return the signed authorization of a refund. Signing again gives the same bytes."""
    unsigned = Authorization(
        sender=sender,
        recipient=case.recipient,
        value_units=case.amount_units,
        valid_after=0,
        valid_before=_NEVER,
        nonce=refund_nonce(case.payment, network),
        signature=b"",
    )
    return sign_authorization(secret, unsigned, network)


def missing_address(case: RefundCase) -> str:
    """Return the problem of a refund whose recipient the operator must name."""
    method = case.payment.method
    came = "was minted" if method is None else f"came by {method}, and its proof names no address"
    return f"This money {came}: approve it with --to ADDRESS."


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RefundTiming:
    """Durations in seconds."""

    # Between two sweeps over all refunds.
    sweep_s: float = 15.0
    # No endpoint lags for this long, so refusals that span it are the token's.
    lag_s: float = 120.0


class Refunds:
    """Sends refunds from the refund key, and tracks each until it is closed."""

    def __init__(
        self,
        store: SqlStore,
        context: PluginContext,
        secret: bytes,
        *,
        timing: RefundTiming | None = None,
    ) -> None:
        self._store = store
        self._ledger = store.refunds
        self._chain: Chain = context.chain
        self._journal = context.journal
        self._settings = context.settings
        self._now = context.now
        self._secret = secret
        self._signer = Signer(secret, context, self._write_down)
        self.timing = timing or RefundTiming()
        self._periodic = Periodic("refund-sweep", self.sweep, self.timing.sweep_s)
        # The refund as it was when its submit began, by payment id.
        self._submitting: dict[int, RefundCase] = {}
        # The first and last time in an unbroken row of the token's refusals, by payment id.
        self._refused: dict[int, tuple[float, float]] = {}
        # The smallest amount that the key cannot pay, and why. Each sweep clears it.
        self._shortage: tuple[int, str] | None = None
        self.address = self._signer.address

    def start(self, is_mine: Callable[[], bool] = always) -> None:
        """Sweep at once, then every few seconds, while `is_mine` returns True."""
        self._periodic.start(is_mine, every_s=self.timing.sweep_s)

    async def close(self) -> None:
        """Stop. Sent refunds are durable."""
        await self._periodic.stop()

    async def gas_of_key(self) -> GasOfKey:
        """Return the refund key's gas balance, and about how many refunds it pays for.

        Raises `ChainUnavailable`.
        """
        money = await self._signer.gas_money()
        return GasOfKey(
            address=self.address,
            balance_wei=money.balance_wei,
            calls=money.lasts_for(KEY_GAS),
        )

    async def can_send(self) -> bool:
        """Whether gas is under the cap and the key has enough of it for several refunds.

        Raises `ChainUnavailable`.
        """
        return await self._signer.can_pay(KEY_GAS)

    async def sweep(self, only: Collection[str] | None = None) -> None:
        """Track sent refunds, and send those that may be sent; `only` selects task ids."""
        await self._resend_unmined()
        # Once the daily cap refuses one automatic refund, it refuses the others too. Skip their RPC
        # calls.
        refusal = None
        self._shortage = None
        cases = await self._ledger.cases(PaymentState.REFUNDING, PaymentState.REFUND_DUE)
        self._forget_refusals(cases)
        for case in cases:
            if only is not None and case.task_id not in only:
                continue
            if refusal is None or case.decision is not None or case.sender is not None:
                refusal = await self._advance(case) or refusal
            elif self.may_send(case) and case.problem is None:
                await self._ledger.note_problem(case.payment.id, refusal)

    def _forget_refusals(self, cases: Sequence[RefundCase]) -> None:
        """Forget refusals of refunds that are closed or were approved again."""
        sent = {case.payment.id for case in cases if case.payment.state is PaymentState.REFUNDING}
        self._refused = {id_: times for id_, times in self._refused.items() if id_ in sent}

    async def _resend_unmined(self) -> None:
        """Resend unmined transactions. The sweep goes on even if that fails."""
        try:
            await self._signer.tend()
        except ChainUnavailable as error:
            _log.warning("refunds.not_sent", error=error.message, details=error.details)

    async def _advance(self, case: RefundCase) -> str | None:
        """Advance one refund; return the refusal if the daily cap stops it.

        An error stops only this refund.
        """
        about = {"task": case.task_id, "slug": case.slug, "payment": case.payment.id}
        with structlog.contextvars.bound_contextvars(**about):
            return await self._take_step(case)

    async def _take_step(self, case: RefundCase) -> str | None:
        try:
            if case.payment.state is PaymentState.REFUNDING:
                await self._follow(case)
            elif self.may_send(case):
                await self._send(case)
        except RefundRefused as refusal:
            await self._ledger.note_problem(case.payment.id, str(refusal))
            return str(refusal)
        except ChainUnavailable as error:
            _log.warning("refund.chain_silent", task=case.task_id, error=error.message)
        except Exception:  # noqa: BLE001 - the next sweep tries again
            _log.exception("refund.not_advanced", task=case.task_id)
        return None

    def may_send(self, case: RefundCase) -> bool:
        """Whether the refund is approved, or is automatic and the payer is proven."""
        is_automatic = self._settings.refunds_automatically and case.payer_proven
        return case.decision is Decision.APPROVED or (case.decision is None and is_automatic)

    async def problem_of(self, case: RefundCase) -> str | None:
        """Return why a refund cannot be sent now, or None. Writes nothing."""
        return await self._wait_reason(case) or await self._refusal(case)

    async def _wait_reason(self, case: RefundCase) -> str | None:
        """Return why a refund has to wait, or None."""
        if case.needs_address:
            return missing_address(case)
        if case.sender not in (None, self.address):
            return f"It was begun by another refund key, {case.sender}: set that one again."
        if shortage := await self._find_shortage(case):
            self._shortage = shortage
            return shortage[1]
        return None

    def _known_shortage(self, case: RefundCase) -> str | None:
        """Return the shortage that this sweep has found already, if it stops this refund too.

        Saves RPC calls. That the key has enough is never assumed.
        """
        if self._shortage is None or case.sender not in (None, self.address):
            return None
        units, problem = self._shortage
        return problem if case.amount_units >= units else None

    async def _find_shortage(self, case: RefundCase) -> tuple[int, str] | None:
        """Return the smallest amount that the key cannot pay, and why; None if it can pay this."""
        if not await self.can_send():
            return 0, (
                f"The refund key {self.address} has too little ETH, or gas is over the cap. "
                "Send it some ETH, or wait until gas is cheaper."
            )
        # Read all at one block. Otherwise a refund that was just mined may count neither as on its
        # way nor as gone from the balance.
        block = await self._chain.head()
        on_its_way = await self._units_on_their_way(case, block)
        holds = await self._chain.call_uint(BALANCE_OF + word(self.address), at=block)
        if holds - on_its_way >= case.amount_units:
            return None
        others = f" for others than {on_its_way / 10**6:g} on their way" if on_its_way else ""
        return case.amount_units, (
            f"The refund key {self.address} holds only {holds / 10**6:g} USDC{others}. "
            "Send it some USDC."
        )

    async def _units_on_their_way(self, case: RefundCase, block: Block) -> int:
        """Return the sum of other refunds that are signed but not mined at a block."""
        count = await self._chain.transaction_count(self.address, at=block)
        unmined = await self._journal.unmined(self.address)
        waiting = {payment.id for payment, sent in unmined if sent.nonce >= count}
        refunds = await self._ledger.cases(PaymentState.REFUNDING)
        return sum(
            other.amount_units
            for other in refunds
            if other.payment.id in waiting and other.payment.id != case.payment.id
        )

    async def _refusal(self, case: RefundCase) -> str | None:
        """Return why the token refuses the refund, or None."""
        try:
            await self._signer.simulate(self._build_call(case))
        except CallReverted as refusal:
            return f"The token refuses it: {refusal}"
        return None

    async def _send(self, case: RefundCase) -> None:
        """Sign, store and send a refund, or note its problem.

        If the nonce is already spent, only store that the refund has begun; the next sweep closes
        it.
        """
        if await is_spent(self._chain, self._sign(case), await self._chain.head()):
            await self._begin(case, None)
        elif problem := self._known_shortage(case) or await self.problem_of(case):
            await self._ledger.note_problem(case.payment.id, problem)
        else:
            await self._submit(case)

    async def _follow(self, case: RefundCase) -> None:
        """Close a sent refund if its nonce is spent, else send it again.

        The transaction may have reverted, for example for lack of USDC. It is then signed again
        once the key can pay, and fails if the token still refuses it.
        """
        block, signed = await self._chain.head(), self._sign(case)
        if await is_spent(self._chain, signed, block):
            await self._close(case, signed, block)
        elif case.sender == self.address and await self._signer.resend(case.payment):
            self._refused.pop(case.payment.id, None)
        elif not await self._must_wait(case):
            if await self._submit(case) is None and (problem := await self._refusal(case)):
                await self._give_up(case, problem)
            else:
                self._refused.pop(case.payment.id, None)

    async def _must_wait(self, case: RefundCase) -> bool:
        """Return whether a sent refund has to wait, and note why."""
        problem = self._known_shortage(case) or await self._wait_reason(case)
        if problem is None:
            return False
        self._refused.pop(case.payment.id, None)
        await self._ledger.note_problem(case.payment.id, problem)
        return True

    async def _close(self, case: RefundCase, signed: Authorization, block: Block) -> None:
        """Store how the nonce was spent. Only our key can have signed that."""
        event = await self._find_sent(case, signed) or await find_event(
            self._chain,
            signed,
            self._settings.chain,
            after=0,
            since=case.created_at - _SENT_BEFORE_S,
            known=block,
        )
        if event is None:
            return
        if not event.was_used:
            problem = "Its authorization was cancelled with the refund key."
            await self._ledger.fail(case.payment.id, problem, now=self._now())
            return
        tx_hash = event.receipt.tx_hash
        await self._store.note_mined(event.receipt)
        await self._ledger.end(case.payment.id, tx_hash, now=self._now())
        _log.info("refund.paid", task=case.task_id, transaction=tx_hash)

    async def _find_sent(self, case: RefundCase, signed: Authorization) -> NonceEvent | None:
        """Return the event in one of the refund's own transactions, or None."""
        sender = case.sender or self.address
        for tx_hash in await self._store.sent_hashes(case.payment.id, sender):
            receipt = await self._chain.receipt(tx_hash)
            if receipt and (event := event_in(receipt, signed, self._settings.chain)):
                return event
        return None

    async def _give_up(self, case: RefundCase, problem: str) -> None:
        """Fail a refund that the token refuses, unless the endpoint may only lag.

        A lagging endpoint also refuses a refund that was just mined, or whose money has just
        arrived.
        """
        if await is_spent(self._chain, self._sign(case), await self._chain.head()):
            return
        if not self._is_refused_for_good(case):
            await self._ledger.note_problem(case.payment.id, problem)
            return
        if await self._must_wait(case):
            return
        await self._ledger.fail(case.payment.id, problem, now=self._now())
        _log.error("refund.failed", task=case.task_id, problem=problem)

    def _is_refused_for_good(self, case: RefundCase) -> bool:
        """Note a refusal; return whether refusals in a row span longer than any endpoint lags.

        A longer gap between two, such as an outage, starts the row again.
        """
        now = self._now()
        first, last = self._refused.get(case.payment.id, (now, now))
        if now - last > self.timing.lag_s:
            first = now
        self._refused[case.payment.id] = (first, now)
        return now - first >= self.timing.lag_s

    async def _submit(self, case: RefundCase) -> str | None:
        self._submitting[case.payment.id] = case
        try:
            return await self._signer.submit(case.payment, self._build_call(case))
        finally:
            del self._submitting[case.payment.id]

    async def _write_down(
        self, payment: Payment, unsigned: UnsignedTransaction
    ) -> SignedTransaction | None:
        return await self._begin(self._submitting[payment.id], unsigned)

    async def _begin(
        self, case: RefundCase, unsigned: UnsignedTransaction | None
    ) -> SignedTransaction | None:
        """Store payment `refunding` and its transaction; return the transaction to send.

        Raises `RefundRefused` if the daily cap is used up, and `RuntimeError` if the operator has
        changed the address or withdrawn the approval since `case` was read.
        """
        is_approved = case.decision is Decision.APPROVED
        head = await self._chain.head()
        return await self._ledger.begin(
            case.payment.id,
            unsigned,
            sender=case.sender or self.address,
            recipient=case.recipient,
            search_from_block=max(head.number - _OLDER_NODES_BLOCKS, 0),
            cap_units=None if is_approved else usdc(self._settings.refund_daily_cap),
            now=self._now(),
        )

    def _sign(self, case: RefundCase) -> Authorization:
        return sign_refund(self._secret, case.sender or self.address, case, self._settings.chain)

    def _build_call(self, case: RefundCase) -> Call:
        return key_call(self._sign(case), self._settings.chain)
