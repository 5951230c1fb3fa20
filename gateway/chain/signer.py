"""A key of the gateway that sends transactions; each is written down before it is sent.

The settlement keys and the refund key are such signers. Any number of payments is under way at
once: no payment holds what another needs while it waits for the chain. The journal decides nonces,
in the write that makes a signed transaction durable. After a restart the same bytes are sent again,
and no nonce is lost. A stuck transaction is replaced by a dearer one of the same nonce.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

import attrs

from gateway.chain.keys import address_of
from gateway.chain.multicall import MULTICALL3, batch_data, read_successes
from gateway.chain.transactions import Transaction, read_transaction, sign_transaction
from gateway.concurrency.shared_answers import SharedAnswer
from gateway.contracts import (
    CallReverted,
    PluginContext,
    SignedTransaction,
    UnsignedBatch,
    UnsignedTransaction,
)
from gateway.domain import Payment

# The gateway sells only while the key can pay for this many calls more.
_RESERVE_CALLS = 5
# A transaction that is not mined after this time is replaced by a dearer one.
_STUCK_S = 15
# A batch is sent again after this time at the earliest.
_RESEND_S = 2.0
# So many transactions of a key wait at most. A node that keeps 16 of one sender mines these in four
# blocks, 8 s, which is well within the 20 s that an accepted authorization lasts at least. What
# waited longer would be mined after its authorization has expired, and burn gas.
MOST_WAITING = 64
# A gas balance is believed for this time.
_BALANCE_TTL_S = 15

Fees = tuple[int, int]
"""(Max fee, max priority fee) of a transaction, in wei per gas."""

MostNonces = Callable[[Payment], Awaitable[int]]
"""Returns how many nonces a payment may use up before no more gas is spent on it."""

WriteDown = Callable[[Payment, UnsignedTransaction], Awaitable[SignedTransaction | None]]
"""Signs with the next nonce and makes that durable, and the payment's state with it.

Returns what is to be sent for the payment.
"""


@attrs.frozen(kw_only=True)
class Call:
    """A contract call: the contract, its calldata, and the gas limit."""

    to: str
    data: bytes = attrs.field(repr=False)
    gas: int


@attrs.frozen(kw_only=True)
class GasMoney:
    """The ETH balance of a key, and the present gas price."""

    balance_wei: int
    fee_wei: int
    """Per gas, as blocks take it now."""
    max_fee_wei: int
    """Per gas, as the gateway bids."""

    def needed_wei(self, gas: int) -> int:
        """Return the balance that the key needs before calls of this gas limit are sold."""
        return self.max_fee_wei * gas * _RESERVE_CALLS

    def lasts_for(self, gas: int) -> int:
        """Return about how many calls of this gas limit the balance pays for."""
        return self.balance_wei // max(self.fee_wei * gas, 1)


class Signer:
    """Sends transactions, each under a nonce of its own, without a gap."""

    def __init__(
        self,
        secret: bytes,
        context: PluginContext,
        write_down: WriteDown,
        *,
        most_nonces: MostNonces | None = None,
        siblings: Sequence[str] = (),
    ) -> None:
        """`siblings` are the addresses of the other keys that may send for the same payments."""
        self._secret = secret
        self.address = address_of(secret)
        self._signers = (self.address, *siblings)
        self._settings = context.settings
        self._chain = context.chain
        self._journal = context.journal
        self._now = context.now
        self._write_down = write_down
        self._most_nonces = most_nonces
        # An endpoint that counts too many transactions would spoil every payment of a block, so
        # this answer is shared by callers at the same time, but not kept.
        self._count: SharedAnswer[int] = SharedAnswer(self._now, kept_s=0)
        self._affordable_until = 0.0
        self._affordable_gas = 0
        # By hash: when it was sent last, if that is not long ago.
        self._sent_at: dict[str, float] = {}
        # What `gas_money` returned last.
        self.seen_money: GasMoney | None = None
        # The number of the newest block when an unmined transaction was first seen here, by hash.
        self._first_heads: dict[str, int] = {}

    async def gas_money(self) -> GasMoney:
        """Read the key's balance and the gas price."""
        balance, (base_fee, priority) = await asyncio.gather(
            self._chain.gas_balance(self.address), self._chain.fees()
        )
        self.seen_money = GasMoney(
            balance_wei=balance,
            fee_wei=base_fee + priority,
            max_fee_wei=self._capped_fee(base_fee, priority),
        )
        return self.seen_money

    async def can_pay(self, gas: int) -> bool:
        """Whether gas is under the cap and the key can pay for several such calls."""
        if self._now() < self._affordable_until and gas <= self._affordable_gas:
            return True
        money = await self.gas_money()
        if money.balance_wei < money.needed_wei(gas) or money.fee_wei > self._cap_wei:
            return False
        self._affordable_until = self._now() + _BALANCE_TTL_S
        self._affordable_gas = gas
        return True

    async def bid(self) -> Fees:
        """Return the fees that a transaction would offer now."""
        base_fee, priority = await self._chain.fees()
        fee = self._capped_fee(base_fee, priority)
        return fee, min(priority, fee)

    async def simulate(self, call: Call, fees: Fees | None = None) -> None:
        """Make the exact call without a transaction; raises `CallReverted`.

        Pass the fees of the transaction: without them, a wallet's code can recognise a simulation
        by its gas price, and agree to the simulation only.
        """
        await self._chain.call(call.data, sender=self.address, to=call.to, gas=call.gas, fees=fees)

    async def submit(self, payment: Payment, call: Call) -> str | None:
        """Send the payment's transaction; sign and store one first if there is none.

        Returns the transaction's hash, or None if the call would revert.
        """
        return await self.resend(payment) or await self.send_new(payment, call)

    async def resend(self, payment: Payment) -> str | None:
        """Send the payment's unmined transaction, whichever key signed it; None without one."""
        transaction = await self._journal.unmined_of(payment.id, *self._signers)
        if transaction is not None and self._was_just_sent(transaction.tx_hash):
            return transaction.tx_hash
        return await self._send(transaction)

    def _was_just_sent(self, tx_hash: str) -> bool:
        """Whether a batch was sent a moment ago; note that it is sent now.

        Every payment of a batch asks for it, and its bytes are many. Without batches it is False.
        """
        if self._settings.settlement_batch == 1:
            return False
        now = self._now()
        sent_at = self._sent_at
        self._sent_at = {one: at for one, at in sent_at.items() if 0 <= now - at < _RESEND_S}
        return self._sent_at.setdefault(tx_hash, now) != now

    async def send_new(self, payment: Payment, call: Call) -> str | None:
        """Sign, write down and send; the caller knows that no transaction of the payment waits.

        Returns the transaction's hash, or None if the call would revert.
        """
        # The journal answers in the order of its writes, so sends begin in the order of nonces.
        return await self._send(await self._begin(payment, call))

    async def send_batch(
        self, batch: Sequence[tuple[Payment, Call]], gas: int
    ) -> tuple[str, Collection[int]] | None:
        """Simulate calls together, write down one transaction of those that succeed, and send it.

        Returns its hash and the ids of its payments; None, with nothing sent, if fewer than two are
        left. `gas` is the limit of the whole. Raises `ValueError` if no Multicall3 answers.
        """
        fees = await self.bid()
        whole = Call(to=MULTICALL3, data=batch_data([call for _, call in batch]), gas=gas)
        try:
            answer, count = await asyncio.gather(
                self._chain.call(
                    whole.data, sender=self.address, to=MULTICALL3, gas=gas, fees=fees
                ),
                self._count_mined(),
            )
        except CallReverted:
            return None
        successes = read_successes(answer, len(batch))
        calls = {each.id: call for (each, call), good in zip(batch, successes, strict=True) if good}
        unsigned = UnsignedBatch(
            signer=self.address,
            signers=self._signers,
            chain_nonce=count,
            most_waiting=MOST_WAITING,
            payments=tuple(calls),
            sign=lambda nonce, payments: self._sign_batch(
                [calls[each] for each in payments], gas, nonce, fees
            ),
        )
        written = await self._journal.begin_batch(unsigned, now=self._now())
        if written is None:
            return None
        transaction, payments = written
        await self._chain.send(transaction.raw)
        return transaction.tx_hash, payments

    def _sign_batch(
        self, calls: Sequence[Call], gas: int, nonce: int, fees: Fees
    ) -> SignedTransaction:
        call = Call(to=MULTICALL3, data=batch_data(calls), gas=gas)
        return self._sign(self._make_transaction(call, nonce, fees))

    async def _send(self, transaction: SignedTransaction | None) -> str | None:
        if transaction is None:
            return None
        await self._chain.send(transaction.raw)
        return transaction.tx_hash

    async def _begin(self, payment: Payment, call: Call) -> SignedTransaction | None:
        """Simulate, then have the journal sign with the next nonce and write that down.

        Returns None if no more gas is spent on the payment: the call would revert, or it passes
        simulations and has reverted too often.
        """
        used = await self._journal.nonces_of(payment.id, *self._signers)
        if used and self._most_nonces is not None and used >= await self._most_nonces(payment):
            return None
        fees = await self.bid()
        try:
            _, count = await asyncio.gather(self.simulate(call, fees), self._count_mined())
        except CallReverted:
            # Spent or expired; reconciliation finds out which.
            return None
        unsigned = UnsignedTransaction(
            signer=self.address,
            signers=self._signers,
            chain_nonce=count,
            used_nonces=used,
            most_waiting=MOST_WAITING,
            sign=lambda nonce: self._sign(self._make_transaction(call, nonce, fees)),
        )
        return await self._write_down(payment, unsigned)

    async def _count_mined(self) -> int:
        return await self._count.get(lambda: self._chain.transaction_count(self.address))

    async def count_waiting(self) -> int:
        """Return how many transactions of this key wait in the mempools, or are about to."""
        return await self._journal.waiting_of(self.address, await self._count_mined())

    async def tend(self) -> None:
        """Send unmined transactions again; replace stuck ones by dearer ones."""
        count = await self._chain.transaction_count(self.address)
        await self._journal.mark_mined(self.address, count)
        unmined = await self._journal.unmined(self.address)
        passed_over = await self._find_passed_over([transaction for _, transaction in unmined])
        for payment, transaction in unmined:
            newest = transaction
            is_late = self._now() - transaction.sent_at > _STUCK_S
            if is_late and transaction.tx_hash in passed_over:
                newest = await self._replace_stuck(payment, transaction)
            await self._chain.send(newest.raw)

    async def _find_passed_over(self, unmined: Sequence[SignedTransaction]) -> set[str]:
        """Return the hashes that no block holds, though one was mined since they were first seen.

        While the chain makes no blocks, no fee is too low, and a higher one would only cost more.
        """
        if not unmined:
            self._first_heads.clear()
            return set()
        number = (await self._chain.head()).number
        seen = self._first_heads
        self._first_heads = {one.tx_hash: seen.get(one.tx_hash, number) for one in unmined}
        return {tx_hash for tx_hash, first in self._first_heads.items() if first < number}

    async def _replace_stuck(self, payment: Payment, stuck: SignedTransaction) -> SignedTransaction:
        """Write down the same call with the same nonce and a higher fee.

        Returns the stuck transaction itself if the cap allows no higher fee.
        """
        base_fee, _ = await self._chain.fees()
        # Nodes want both fees to be at least 12.5 % higher.
        priority = stuck.max_priority_wei * 9 // 8 + 1
        least = stuck.max_fee_wei * 9 // 8 + 1
        fee = min(max(least, 2 * base_fee + priority), self._cap_wei)
        if fee < least or priority > fee:
            return stuck
        transaction = read_transaction(stuck.raw)
        transaction["maxFeePerGas"], transaction["maxPriorityFeePerGas"] = fee, priority
        dearer = self._sign(transaction)
        await self._journal.add_replacement(payment.id, dearer)
        return dearer

    @property
    def _cap_wei(self) -> int:
        return int(self._settings.max_fee_gwei * 10**9)

    def _capped_fee(self, base_fee: int, priority: int) -> int:
        """Return twice the base fee and the priority fee, at most the cap.

        So the base fee may rise for six full blocks before the transaction is stuck.
        """
        return min(2 * base_fee + priority, self._cap_wei)

    def _make_transaction(self, call: Call, nonce: int, fees: Fees) -> Transaction:
        return {
            "chainId": self._settings.chain.chain_id,
            "nonce": nonce,
            "maxPriorityFeePerGas": fees[1],
            "maxFeePerGas": fees[0],
            "gas": call.gas,
            "to": bytes.fromhex(call.to[2:]),
            "value": 0,
            "data": call.data,
        }

    def _sign(self, transaction: Transaction) -> SignedTransaction:
        tx_hash, raw = sign_transaction(self._secret, transaction)
        return SignedTransaction(
            signer=self.address,
            nonce=transaction["nonce"],
            tx_hash=tx_hash,
            raw=raw,
            max_fee_wei=transaction["maxFeePerGas"],
            max_priority_wei=transaction["maxPriorityFeePerGas"],
            sent_at=self._now(),
        )
