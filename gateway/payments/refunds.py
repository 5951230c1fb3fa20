"""Gives money back: each refund that is approved, or that settings pay automatically, once.

A refund is itself an EIP-3009 authorization, signed by the refund key, with a nonce that follows
from the payment. The token accepts a nonce once, so no crash, second process or restored backup can
pay a refund twice. The token's own events close a refund whose outcome is unknown.
"""

from collections.abc import Callable, Collection, Sequence

import attrs
import structlog
from eth_hash.auto import keccak

from gateway.chain.block_times import last_block_before
from gateway.chain.signer import Call, Signer
from gateway.chain.smart_wallets import KEY_GAS, key_call, sign_authorization
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
from gateway.payments.reconcile import find_event, is_spent
from gateway.store import SqlStore

# An endpoint that reports a nonce as unspent may lag by this many blocks (under 3 hours), so the
# refund may be in a block that is this much older than the head.
_UNSPENT_MARGIN = 5_000

# A refund does not expire: it ends when its nonce is spent.
_NEVER = 2**256 - 1

_log = structlog.get_logger()


def refund_nonce(payment: Payment, network: Network) -> str:
    """Return the nonce of a payment's refund: the same from every copy of the database.

    The hash covers the chain, the token and what paid: the payer and the nonce of an
    authorization, or a transaction. A log's index is left out, because it changes if the block is
    replaced.
    """
    if payment.paid_tx is None:
        raise ValueError("nothing was paid")
    paid = word(payment.paid_tx)
    if payment.authorization is not None:
        paid = word(payment.payer) + word(payment.authorization.nonce)
    return "0x" + keccak(b"refund" + network.domain_separator + paid).hex()


def sign_refund(secret: bytes, sender: str, case: RefundCase, network: Network) -> Authorization:
    """Return the refund key's authorization of one refund; signing again gives the same bytes."""
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
    """Return the problem of a refund without a recipient, until an operator names an address."""
    method = case.payment.method
    came = "was minted" if method is None else f"came by {method}, and its proof names no address"
    return f"This money {came}: approve it with --to ADDRESS."


@attrs.frozen(kw_only=True)
class RefundTiming:
    """How long refunds wait, in seconds."""

    # Between two sweeps over all refunds.
    sweep_s: float = 15.0

    # No endpoint lags for longer: a refusal that lasts this long is the token's.
    lag_s: float = 120.0


class Refunds:
    """Sends refunds with the refund key, and follows each refund to its end."""

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
        # By the payment's id: the refund as it was when the submit began.
        self._submitting: dict[int, RefundCase] = {}
        # By the payment's id: when the token was first and last seen to refuse a refund that was
        # sent, while every answer between the two was a refusal.
        self._refused: dict[int, tuple[float, float]] = {}
        # Since the last sweep began: the least amount that the key was too poor for, and why.
        self._shortage: tuple[int, str] | None = None
        self.address = self._signer.address

    def start(self, is_mine: Callable[[], bool] = always) -> None:
        """Sweep at once, then every few seconds, while `is_mine` returns True."""
        self._periodic.is_mine = is_mine
        self._periodic.every_s = self.timing.sweep_s
        self._periodic.start()

    async def close(self) -> None:
        """Stop. Refunds that were sent are durable."""
        await self._periodic.stop()

    async def look_at_gas(self) -> GasOfKey:
        """Return the refund key's balances, and about how many refunds they pay for.

        Raises `ChainUnavailable`.
        """
        money = await self._signer.gas_money()
        return GasOfKey(
            address=self.address,
            balance_wei=money.balance_wei,
            calls=money.lasts_for(KEY_GAS),
        )

    async def can_send(self) -> bool:
        """Return whether gas is under the cap and the key can pay for several refunds.

        Raises `ChainUnavailable`.
        """
        return await self._signer.can_pay(KEY_GAS)

    async def sweep(self, only: Collection[str] | None = None) -> None:
        """Follow the refunds that were sent, and send those that may be sent.

        `only` limits both to these task ids.
        """
        await self._resend_unmined()
        # Once the day's cap has refused a refund, it refuses the other automatic refunds too, and
        # asking the chain about each of them would be in vain.
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
        """Forget the refusals of refunds that are closed, or were approved again."""
        sent = {case.payment.id for case in cases if case.payment.state is PaymentState.REFUNDING}
        self._refused = {id_: times for id_, times in self._refused.items() if id_ in sent}

    async def _resend_unmined(self) -> None:
        """Send unmined transactions again. If an endpoint refuses them, the sweep still goes on."""
        try:
            await self._signer.tend()
        except ChainUnavailable as error:
            _log.warning("refunds.not_sent", error=error.message, details=error.details)

    async def _advance(self, case: RefundCase) -> str | None:
        """Take one refund a step further; return the refusal if the day's cap stops it.

        An error here stops only this refund.
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
        """Whether the operator approved the refund, or settings pay it to a proven payer."""
        is_automatic = self._settings.refunds_automatically and case.payer_proven
        return case.decision is Decision.APPROVED or (case.decision is None and is_automatic)

    async def problem_of(self, case: RefundCase) -> str | None:
        """Return why a refund cannot be sent now, or None; writes nothing."""
        return await self._wait_reason(case) or await self._refusal(case)

    async def _wait_reason(self, case: RefundCase) -> str | None:
        """Return why a refund has to wait, or None. It goes on once that has changed."""
        if case.needs_address:
            return missing_address(case)
        if case.sender not in (None, self.address):
            return f"It was begun by another refund key, {case.sender}: set that one again."
        if shortage := await self._find_shortage(case):
            self._shortage = shortage
            return shortage[1]
        return None

    def _known_shortage(self, case: RefundCase) -> str | None:
        """Return why a refund has to wait if this sweep found the key too poor for it, or None.

        Only a shortage is known from before. That the key has enough is asked for each refund.
        """
        if self._shortage is None or case.sender not in (None, self.address):
            return None
        units, problem = self._shortage
        return problem if case.amount_units >= units else None

    async def _find_shortage(self, case: RefundCase) -> tuple[int, str] | None:
        """Return the least amount that the key lacks the gas or the USDC for, and its problem."""
        if not await self.can_send():
            return 0, (
                f"The refund key {self.address} has too little ETH, or gas is over the cap. "
                "Send it some ETH, or wait until gas is cheaper."
            )
        # Of one block: endpoints of different blocks would count a refund that was just mined
        # neither as on its way nor as gone from the balance.
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
        """Return the amount of other refunds that are signed but not mined by a block."""
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
        """Return why the token refuses a refund for which the key has the money, or None."""
        try:
            await self._signer.simulate(self._build_call(case))
        except CallReverted as refusal:
            return f"The token refuses it: {refusal}"
        return None

    async def _send(self, case: RefundCase) -> None:
        """Sign, write down and send, or note the problem.

        If the nonce is spent already, only write down that the refund has begun: the next sweep
        closes it.
        """
        if await is_spent(self._chain, self._sign(case), await self._chain.head()):
            start = await last_block_before(self._chain, case.created_at)
            await self._begin(case, None, start)
        elif problem := self._known_shortage(case) or await self.problem_of(case):
            await self._ledger.note_problem(case.payment.id, problem)
        else:
            await self._submit(case)

    async def _follow(self, case: RefundCase) -> None:
        """Close a refund whose nonce is spent; send any other refund again.

        The transaction may have reverted, such as for lack of money. Then it is signed again once
        the key has the money, and fails if the token still refuses it.
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
        """Note why a sent refund has to wait; return whether it has to."""
        problem = self._known_shortage(case) or await self._wait_reason(case)
        if problem is None:
            return False
        self._refused.pop(case.payment.id, None)
        await self._ledger.note_problem(case.payment.id, problem)
        return True

    async def _close(self, case: RefundCase, signed: Authorization, block: Block) -> None:
        """Store the transaction that spent the nonce. Only our key can have signed it."""
        start = case.search_from_block or 0
        event = await find_event(
            self._chain, signed, self._settings.chain, from_block=start, known=block
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

    async def _give_up(self, case: RefundCase, problem: str) -> None:
        """Leave a refund that the token refuses to the operator, once no endpoint can lag.

        An endpoint that lags refuses a refund for which the key has just got the money, or that
        was just mined, however long ago it was signed.
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
        """Note a refusal; return whether refusals in a row span more time than an endpoint lags.

        After a longer pause, such as an outage, they are counted from the beginning.
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
        # The nonce was unspent a moment ago, so the refund is in no block older than the margin.
        head = await self._chain.head()
        case = self._submitting[payment.id]
        return await self._begin(case, unsigned, max(head.number - _UNSPENT_MARGIN, 0))

    async def _begin(
        self, case: RefundCase, unsigned: UnsignedTransaction | None, start: int
    ) -> SignedTransaction | None:
        """Store payment `refunding` and its transaction; return the transaction to send.

        Raises `RefundRefused` if the day's cap is used up, and `RuntimeError` if the operator
        named another address, or took the approval back, since `case` was read.
        """
        is_approved = case.decision is Decision.APPROVED
        return await self._ledger.begin(
            case.payment.id,
            unsigned,
            sender=case.sender or self.address,
            recipient=case.recipient,
            search_from_block=start,
            cap_units=None if is_approved else usdc(self._settings.refund_daily_cap),
            now=self._now(),
        )

    def _sign(self, case: RefundCase) -> Authorization:
        """Return the authorization, with the address of the key that began the refund."""
        return sign_refund(self._secret, case.sender or self.address, case, self._settings.chain)

    def _build_call(self, case: RefundCase) -> Call:
        return key_call(self._sign(case), self._settings.chain)
