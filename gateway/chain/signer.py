"""Signers: the settlement keys and the refund key, which send transactions.

Each transaction is stored before it is sent. The journal assigns its nonce in the same write, so
after a restart the same bytes are sent again, and no nonce is lost. Payments run concurrently: none
holds a lock while it waits for the chain. A stuck transaction is replaced by one with the same
nonce and a higher fee.
"""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Collection, Sequence

import attrs

from gateway.chain.keys import address_of
from gateway.chain.transactions import (
    MULTICALL3,
    UNKNOWN,
    Call,
    Known,
    Transaction,
    batch_data,
    read_successes,
    read_transaction,
    sign_transaction,
)
from gateway.concurrency.shared_answers import SharedAnswer
from gateway.contracts import (
    CallReverted,
    NoFreeNonce,
    PluginContext,
    SignedTransaction,
    UnsignedBatch,
    UnsignedTransaction,
)
from gateway.domain import Payment

# The gateway sells only while the key can pay for this many more calls.
_RESERVE_CALLS = 5
# A transaction that is not mined after this time is replaced with a higher fee. On Base that is 75
# blocks, in which the base fee rises by 35 % at most, and bids are twice the base fee.
_STUCK_S = 15
# Minimum time before a batch is sent again.
_RESEND_S = 2.0
# Limit of a key's pending transactions. A node that accepts 16 per sender mines them in four
# blocks: under a second on Base, and 8 s in blocks of 2 s, well within the 20 s that every accepted
# authorization is still valid. A longer queue would mine transactions after their authorization has
# expired, which burns gas. Two batches of 100 payments fit into a block of Base, so 64 take 6.4 s.
MAX_WAITING = 64
# Cache time of a sufficient gas balance.
_BALANCE_TTL_S = 15

Fees = tuple[int, int]
"""(max fee, max priority fee), in wei per gas."""

MostNonces = Callable[[Payment], Awaitable[int]]
"""Returns how many nonces a payment may use before the gateway stops spending gas on it."""

WriteDown = Callable[[Payment, UnsignedTransaction], Awaitable[SignedTransaction | None]]
"""Signs with the next nonce, and stores transaction and payment state in one write.

Returns the transaction to send for the payment.
"""

Measured = Callable[[str], contextlib.AbstractContextManager[object]]
"""Measures a write that signs with this key."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class GasMoney:
    """A key's ETH balance, and the current gas price."""

    balance_wei: int
    fee_wei: int
    """Current price per gas."""
    max_fee_wei: int
    """The gateway's bid per gas."""

    def needed_wei(self, gas: int) -> int:
        """Return the balance required to sell calls with this gas limit."""
        return self.max_fee_wei * gas * _RESERVE_CALLS

    def lasts_for(self, gas: int) -> int:
        """Return about how many calls with this gas limit the balance pays for."""
        return self.balance_wei // max(self.fee_wei * gas, 1)


class Signer:
    """Sends transactions with consecutive nonces."""

    def __init__(
        self,
        secret: bytes,
        context: PluginContext,
        write_down: WriteDown,
        *,
        most_nonces: MostNonces | None = None,
        siblings: Sequence[str] = (),
        measured: Measured = contextlib.nullcontext,
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
        self._measured = measured
        # Shared by concurrent callers but not cached: a wrong count from one endpoint would
        # otherwise break every payment of a block.
        self._count: SharedAnswer[int] = SharedAnswer(self._now, ttl_s=0)
        self._waiting: SharedAnswer[int] = SharedAnswer(self._now, ttl_s=0)
        self._money: SharedAnswer[GasMoney] = SharedAnswer(self._now, ttl_s=0)
        self._affordable_until = 0.0
        self._affordable_gas = 0
        # When a batch was last sent, by hash; only recent ones.
        self._sent_at: dict[str, float] = {}
        # The last result of `gas_money`.
        self.seen_money: GasMoney | None = None
        # By hash: the head's number when an unmined transaction was first seen here.
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
        """Whether the gas price is under the cap and the key can pay for several such calls."""
        # Also bounded if the clock went back.
        is_recent = 0 < self._affordable_until - self._now() <= _BALANCE_TTL_S
        if is_recent and gas <= self._affordable_gas:
            return True
        money = await self._money.get(self.gas_money)
        if money.balance_wei < money.needed_wei(gas) or money.fee_wei > self._cap_wei:
            return False
        self._affordable_until = self._now() + _BALANCE_TTL_S
        self._affordable_gas = gas
        return True

    async def bid(self) -> Fees:
        """Return the fees to bid now."""
        base_fee, priority = await self._chain.fees()
        fee = self._capped_fee(base_fee, priority)
        return fee, min(priority, fee)

    async def simulate(self, call: Call, fees: Fees | None = None) -> None:
        """Simulate the exact call; raises `CallReverted`.

        Pass the transaction's fees: otherwise a wallet's code could detect the simulation by its
        gas price, and accept only there.
        """
        await self._chain.call(call.data, sender=self.address, to=call.to, gas=call.gas, fees=fees)

    async def submit(self, payment: Payment, call: Call) -> str | None:
        """Send the payment's transaction; sign and store one first if there is none.

        Returns its hash, or None if the call would revert.
        """
        return await self.resend(payment) or await self.send_new(payment, call)

    async def resend(self, payment: Payment) -> str | None:
        """Send the payment's unmined transaction again, from any of the keys; None without one."""
        transaction = await self._journal.unmined_of(payment.id, *self._signers)
        if transaction is not None and self._was_just_sent(transaction.tx_hash):
            return transaction.tx_hash
        return await self._send(transaction)

    def _was_just_sent(self, tx_hash: str) -> bool:
        """Whether a batch was sent a moment ago; if not, note that it is sent now.

        Every payment of a batch resends it, and it is large. Always False without batches.
        """
        if self._settings.settlement_batch == 1:
            return False
        now = self._now()
        sent_at = self._sent_at
        self._sent_at = {one: at for one, at in sent_at.items() if 0 <= now - at < _RESEND_S}
        return self._sent_at.setdefault(tx_hash, now) != now

    async def send_new(self, payment: Payment, call: Call, known: Known = UNKNOWN) -> str | None:
        """Sign, store and send. The payment must have no pending transaction.

        If the journal has a pending one nevertheless, that is sent. Returns its hash, or None if
        the call would revert. Raises `NoFreeNonce`.
        """
        # The journal returns in the order of its writes, so sends start in nonce order.
        return await self._send(await self._begin(payment, call, known))

    async def send_batch(
        self, batch: Sequence[tuple[Payment, Call]], gas: int
    ) -> tuple[str, Collection[int]] | None:
        """Simulate calls together, then store and send one transaction of those that succeed.

        Returns its hash and the ids of its payments; None, with nothing sent, if fewer than two are
        left. `gas` is the limit of the whole batch. Raises `ValueError` if the contract is not
        Multicall3.
        """
        fees = await self.bid()
        whole = Call(to=MULTICALL3, data=batch_data([call for _, call in batch]), gas=gas)
        try:
            answer, count = await asyncio.gather(
                self._chain.call(
                    whole.data, sender=self.address, to=MULTICALL3, gas=gas, fees=fees
                ),
                self.count_mined(),
            )
        except CallReverted:
            return None
        successes = read_successes(answer, len(batch))
        calls = {each.id: call for (each, call), good in zip(batch, successes, strict=True) if good}
        unsigned = UnsignedBatch(
            signer=self.address,
            signers=self._signers,
            chain_nonce=count,
            most_waiting=MAX_WAITING,
            payments=tuple(calls),
            sign=lambda nonce, payments: self._sign_batch(
                [calls[each] for each in payments], gas, nonce, fees
            ),
        )
        with self._measured(self.address):
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

    async def _begin(self, payment: Payment, call: Call, known: Known) -> SignedTransaction | None:
        """Simulate, then have the journal sign with the next nonce and store the transaction.

        Returns None if no more gas is spent on the payment: the call would revert, or has reverted
        too often although simulations pass.
        """
        # The write checks the number, and returns a pending transaction.
        used = 0 if known.is_first else await self._journal.nonces_of(payment.id, *self._signers)
        if used and self._most_nonces is not None and used >= await self._most_nonces(payment):
            return None
        fees = await self.bid()
        unsigned = functools.partial(
            UnsignedTransaction,
            signer=self.address,
            signers=self._signers,
            used_nonces=used,
            most_waiting=MAX_WAITING,
            sign=lambda nonce: self._sign(self._make_transaction(call, nonce, fees)),
        )
        # Only now: the calls above may have taken long.
        count = known.count_of(self.address)
        if count is not None:
            # If too many wait by this count, some may have been mined since.
            with contextlib.suppress(NoFreeNonce), self._measured(self.address):
                return await self._write_down(payment, unsigned(chain_nonce=count))
        try:
            count = await self._count_and_simulate(call, fees, UNKNOWN if used else known)
        except CallReverted:
            # Spent or expired; reconciliation finds out which.
            return None
        with self._measured(self.address):
            return await self._write_down(payment, unsigned(chain_nonce=count))

    async def _count_and_simulate(self, call: Call, fees: Fees, known: Known) -> int:
        """Return the count of mined transactions, and simulate unless a simulation is fresh.

        A plain account's call is not simulated while the key has no free nonce.
        """
        if known.simulate_plain is None:
            _, count = await asyncio.gather(self.simulate(call, fees), self.count_mined())
            return count
        count = await self.count_mined()
        if known.is_fresh():
            return count
        if await self._journal.waiting_of(self.address, count) >= MAX_WAITING:
            raise NoFreeNonce(self.address)
        if not await known.simulate_plain():
            await self.simulate(call, fees)
        return count

    async def count_mined(self) -> int:
        """Return how many transactions of this key are mined."""
        return await self._count.get(lambda: self._chain.transaction_count(self.address))

    async def count_waiting(self) -> int:
        """Return how many transactions of this key are pending or about to be sent."""
        return await self._journal.waiting_of(self.address, await self.count_mined())

    async def check_nonce_free(self) -> None:
        """Raise `NoFreeNonce` if too many transactions wait. Concurrent callers share a count."""
        if await self._waiting.get(self.count_waiting) >= MAX_WAITING:
            raise NoFreeNonce(self.address)

    async def tend(self) -> None:
        """Resend unmined transactions; replace stuck ones with a higher fee."""
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
        """Return unmined hashes that a block mined since they were first seen has left out.

        While the chain mines no blocks, a higher fee would only cost more.
        """
        if not unmined:
            self._first_heads.clear()
            return set()
        number = (await self._chain.head()).number
        seen = self._first_heads
        self._first_heads = {one.tx_hash: seen.get(one.tx_hash, number) for one in unmined}
        return {tx_hash for tx_hash, first in self._first_heads.items() if first < number}

    async def _replace_stuck(self, payment: Payment, stuck: SignedTransaction) -> SignedTransaction:
        """Store the same call with the same nonce and a higher fee, and return it.

        Returns the stuck transaction itself if the cap allows no higher fee.
        """
        base_fee, _ = await self._chain.fees()
        # Nodes require both fees to be at least 12.5 % higher.
        priority = stuck.max_priority_wei * 9 // 8 + 1
        least = stuck.max_fee_wei * 9 // 8 + 1
        fee = min(max(least, 2 * base_fee + priority), self._cap_wei)
        if fee < least or priority > fee:
            return stuck
        transaction = read_transaction(stuck.raw)
        transaction["maxFeePerGas"], transaction["maxPriorityFeePerGas"] = fee, priority
        replacement = self._sign(transaction)
        await self._journal.add_replacement(payment.id, replacement)
        return replacement

    @property
    def _cap_wei(self) -> int:
        return int(self._settings.max_fee_gwei * 10**9)

    def _capped_fee(self, base_fee: int, priority: int) -> int:
        """Return twice the base fee plus the priority fee, at most the cap.

        On Base full blocks double the base fee in 35 seconds: +0.4 % a block, by elasticity 5 and
        denominator 1,000 since 2026-11-05 (base/base#4565). A transaction is replaced after 15.
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
