"""Gives money back: refunds that are approved, or that settings pay by themselves, sent once.

A refund is itself an EIP-3009 authorization, signed by the refund key under a nonce that only
this payment's transfer can have. The token takes a nonce once, so no crash, second process or
restored backup can pay a refund twice; what is unknown is closed by the token's own events.
"""

from collections.abc import Collection

import structlog

from gateway.chain.signer import Call, Signer
from gateway.chain.smart_wallets import KEY_GAS, key_call, settlement_call
from gateway.contracts import CallReverted, Chain, PluginContext, SignedTransaction, Store
from gateway.domain import Authorization, Block, Decision, Payment, PaymentState, RefundCase, usdc
from gateway.domain.eip3009 import BALANCE_OF, word
from gateway.errors import ChainUnavailable, RefundRefused
from gateway.payments.authorizations import find_events, is_spent
from gateway.payments.cutoff import last_block_before
from gateway.payments.periodic import Periodic
from gateway.payments.refund_authorization import sign_refund

_SWEEP_S = 15.0  # between two looks at what is owed
_LAG_S = 120.0  # after which every endpoint knows a transaction that was mined
_UNSPENT_MARGIN = 5_000  # blocks (under 3 h) an endpoint may lag behind when it says "unspent"
_NOBODY = "0x" + "0" * 40  # who a mint came from
_log = structlog.get_logger()


class Refunds:
    """Sends refunds with the refund key, and follows each to its end."""

    def __init__(self, store: Store, context: PluginContext, secret: bytes) -> None:
        self._store = store
        self._ledger = store.refunds
        self._chain: Chain = context.chain
        self._settings = context.settings
        self._now = context.now
        self._secret = secret
        self._signer = Signer(secret, context, self._write_down)
        self._periodic = Periodic("refund-sweep", self.sweep, _SWEEP_S)
        self._submitting: dict[int, RefundCase] = {}  # by payment, as they were looked at
        self.address = self._signer.address

    def start(self) -> None:
        """Begin to sweep: at once, and every few seconds."""
        self._periodic.start()

    async def close(self) -> None:
        """Stop; what is on its way is durable."""
        await self._periodic.stop()

    async def sweep(self, only: Collection[str] | None = None) -> None:
        """Follow what was sent, then send what may be sent; `only` limits both to these tasks."""
        await self._tend()
        refusal = None  # of the day's cap: the other automatic ones need no look at the chain
        for case in await self._ledger.cases(PaymentState.REFUNDING, PaymentState.REFUND_DUE):
            if only is not None and case.task_id not in only:
                continue
            if refusal is None or case.decision is not None or case.sender is not None:
                refusal = await self._advance(case) or refusal
            elif self.may_send(case) and case.problem is None:
                await self._ledger.note_problem(case.payment.id, refusal)

    async def _tend(self) -> None:
        """Send again what is unmined; an endpoint that refuses it keeps nothing from closing."""
        try:
            await self._signer.tend(self._call_of)
        except ChainUnavailable as error:
            _log.warning("refunds.not_sent", error=error.message, details=error.details)

    async def _advance(self, case: RefundCase) -> str | None:
        """Take one refund a step further; returns the refusal where the day's cap keeps it.

        Its failure is no other's.
        """
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
        except Exception:  # noqa: BLE001 - a lane's edge: the next sweep tries again
            _log.exception("refund.not_advanced", task=case.task_id)
        return None

    def may_send(self, case: RefundCase) -> bool:
        """Whether the operator said so, or settings do for a payer who proved themselves."""
        is_automatic = self._settings.refunds == "automatic" and case.payer_proven
        return case.decision is Decision.APPROVED or (case.decision is None and is_automatic)

    async def problem_of(self, case: RefundCase) -> str | None:
        """Return why a refund cannot be sent now, or None; a pure look."""
        if case.recipient == _NOBODY:
            return "Nobody sent this money: approve it with --to ADDRESS."
        if case.sender not in (None, self.address):
            return f"It was begun by another refund key, {case.sender}: set that one again."
        if not await self._signer.can_pay(KEY_GAS):
            return f"The refund key {self.address} has too little ETH, or gas is over the cap."
        try:
            await self._signer.simulate(self._call(case))
        except CallReverted as refusal:
            holds = await self._chain.call_uint(BALANCE_OF + word(self.address))
            if holds < case.amount_units:
                return f"The refund key {self.address} holds only {holds / 10**6:g} USDC."
            return f"The token refuses it: {refusal}"
        return None

    async def _send(self, case: RefundCase) -> None:
        """Sign, write down, send; or note why not. One found paid already is only closed."""
        if await is_spent(self._chain, self._signed(case), await self._chain.head()):
            start = await last_block_before(self._chain, case.created_at)
            await self._begin(case, None, start)
        elif problem := await self.problem_of(case):
            await self._ledger.note_problem(case.payment.id, problem)
        else:
            await self._submit(case)

    async def _follow(self, case: RefundCase) -> None:
        """Close a refund by its event; one whose nonce went to another is signed anew."""
        block, signed = await self._chain.head(), self._signed(case)
        if await is_spent(self._chain, signed, block):
            await self._close(case, signed, block)
        elif case.sender != self.address:
            await self._ledger.note_problem(case.payment.id, await self.problem_of(case))
        elif await self._submit(case) is None:
            await self._give_up(case)

    async def _close(self, case: RefundCase, signed: Authorization, block: Block) -> None:
        """Note the transaction that spent the nonce; only our key can have signed for it."""
        start = case.search_from_block or 0
        for tx_hash, was_used in await find_events(
            self._chain, signed, from_block=start, known=block
        ):
            if was_used:
                await self._ledger.end(case.payment.id, tx_hash, now=self._now())
                _log.info("refund.paid", task=case.task_id, transaction=tx_hash)
            else:
                problem = "Its authorization was cancelled with the refund key."
                await self._ledger.fail(case.payment.id, problem, now=self._now())

    async def _give_up(self, case: RefundCase) -> None:
        """Leave a refund that the token refuses to the operator, once no endpoint can lag."""
        problem = await self.problem_of(case)
        if problem is None or await is_spent(
            self._chain, self._signed(case), await self._chain.head()
        ):
            return
        if self._now() - case.updated_at < _LAG_S:
            await self._ledger.note_problem(case.payment.id, problem)
            return
        await self._ledger.fail(case.payment.id, problem, now=self._now())
        _log.error("refund.failed", task=case.task_id, problem=problem)

    async def _submit(self, case: RefundCase) -> str | None:
        self._submitting[case.payment.id] = case
        try:
            return await self._signer.submit(case.payment, self._call(case))
        finally:
            del self._submitting[case.payment.id]

    async def _write_down(self, payment: Payment, transaction: SignedTransaction) -> None:
        head = await self._chain.head()  # the nonce was unspent a moment ago
        case = self._submitting[payment.id]
        await self._begin(case, transaction, max(head.number - _UNSPENT_MARGIN, 0))

    async def _begin(
        self, case: RefundCase, transaction: SignedTransaction | None, start: int
    ) -> None:
        """R2; refused where the operator named another address since we looked."""
        await self._ledger.begin(
            case.payment.id,
            transaction,
            sender=case.sender or self.address,
            recipient=case.recipient,
            search_from_block=start,
            cap_units=usdc(self._settings.refund_daily_cap),
            now=self._now(),
        )

    async def _call_of(self, payment: Payment) -> Call:
        """Return what a transaction of this key does; it may have been the settlement key once."""
        case = await self._ledger.case_of(payment.id)
        if case is not None:
            return self._call(case)
        if payment.authorization is None:
            raise RuntimeError(f"payment {payment.id} has no refund")
        return await settlement_call(payment.authorization, self._settings.chain, self._chain)

    def _signed(self, case: RefundCase) -> Authorization:
        """Return the authorization; begun by another key, it has that one's address."""
        return sign_refund(self._secret, case.sender or self.address, case, self._settings.chain)

    def _call(self, case: RefundCase) -> Call:
        return key_call(self._signed(case), self._settings.chain)
