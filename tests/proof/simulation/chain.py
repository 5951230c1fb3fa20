"""The chain itself: blocks at a pace, a mempool that drops, replaced newest blocks.

Blocks without a known transaction are not kept: all about them follows from their numbers.
"""

import bisect
import contextvars
import hashlib
import random
from collections import defaultdict

from gateway import CallReverted
from gateway.domain import Block, Receipt
from tests.proof.simulation.blocks import MinedBlock, Transaction, hash_of_block
from tests.proof.simulation.pace import Pace
from tests.proof.simulation.token import (
    TRANSFER_VRS,
    UNDOING,
    Call,
    State,
    Token,
    receipt_logs,
)
from tests.proof.simulation.world import EPOCH, World

# The people's transactions are included that often, or at every block of a slower chain.
_ROUNDS_MS = (200, 600, 2_000, 2_000)
_IDLE_MS = 2_000  # between two chances of a replaced block, if nothing is pending
_QUIET_FEE = 10**7  # wei per gas
_GAS_MONEY = 10**18
_RIGHT = 0.8  # of the preconfirmed receipts; the rest say "reverted"
_ZERO_HASH = "0x" + "0" * 64
_GAS_OF_CALL = 55_000
_BURNED_GAS = 1_000_000
_RAISE = 1.1  # a replacement must bid that much more


class Underpriced(Exception):
    """The node keeps its present transaction."""


class SimulatedChain:
    """The truth about money; RPC endpoints show it late and in part."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.token = Token()
        self.pending: list[Transaction] = []
        self.versions: defaultdict[str, list[Receipt]] = defaultdict(list)  # also of lost blocks
        self.base_fee = _QUIET_FEE
        self.gas_money = _GAS_MONEY
        self.sent: dict[str, str] = {}  # hash → who sent it
        self.batch_trouble = 0.0  # how often a batch of the gateway's runs out of gas
        self.batches: dict[str, tuple[Call, ...]] = {}  # the gateway's, by hash
        self._gas_ends: dict[str, int] = {}  # by hash: the call that has no gas; -1: none has any
        self.burned: set[str] = set()  # the gateway's transactions whose gas a payer's code used up
        self.failed_calls: set[tuple[int, Call]] = set()  # of the gateway's
        self.stuck: dict[int, int] = {}  # endpoint → block it does not get past
        self._names = 0
        self.pace = Pace.draw(world.seed)
        self._round_ms = random.Random(f"round {world.seed}").choice(_ROUNDS_MS)
        # The blocks that differ from what follows from their numbers, oldest first.
        self.kept = [
            MinedBlock(0, hash_of_block("first", 0), self._time_of(0), State({}, {}, {}, {}))
        ]
        self.orphans: dict[int, MinedBlock] = {}
        self._context = contextvars.Context()  # its own: it outlives whoever sends something
        self._plan(self._newest() + 1)

    @property
    def head(self) -> MinedBlock:
        return self.at(self.head_number)

    @property
    def head_number(self) -> int:
        # At the very moment of a block, it is the newest only once it is made.
        return min(self._newest(), self._next - 1)

    @property
    def state(self) -> State:
        return self.kept[-1].state

    def at(self, number: int) -> MinedBlock:
        """Return the block with a number up to the newest."""
        place = bisect.bisect_right(self.kept, number, key=lambda block: block.number) - 1
        before = self.kept[max(place, 0)]
        if before.number == number:
            return before
        name = hash_of_block(f"{self.world.seed}/{number}", number)
        return MinedBlock(number, name, self._time_of(number), before.state)

    def number_before(self, seconds: float) -> int:
        """Return the newest block of some seconds ago."""
        return min(self._newest(seconds), self.head_number)

    def _newest(self, seconds_ago: float = 0.0) -> int:
        passed_ms = int((self.world.loop.time() - seconds_ago) * 1000 + 1e-3)
        return self.pace.newest(EPOCH * 1000 + passed_ms)

    def _time_of(self, number: int) -> int:
        return self.pace.time_of(number) // 1000

    def _name(self, number: int) -> str:
        self._names += 1
        return hash_of_block(f"{self.world.seed}/{number}/{self._names}", number)

    def fund(self, account: str, units: int) -> None:
        """Give an account USDC, before anything happens."""
        self.state.balances[account] = units

    def mine_before(self, seconds: float, transaction: Transaction) -> None:
        """Mine a transaction that long before the history begins, the oldest first."""
        number = max(self.number_before(seconds), self.kept[-1].number + 1)
        self._append(number, self.state, [transaction])

    def calm_gas(self) -> None:
        """Make gas cheap, and give every key enough for it."""
        self.base_fee, self.gas_money = _QUIET_FEE, _GAS_MONEY

    def heal(self) -> None:
        """Make gas cheap and let every endpoint catch up."""
        self.calm_gas()
        self.stuck.clear()

    # -- the mempool

    def new_transaction(self, sender: str, *calls: Call, **more: object) -> Transaction:
        self._names += 1
        name = f"{self.world.seed}/{self._names}"
        tx_hash = "0x" + hashlib.sha256(name.encode()).hexdigest()
        return Transaction(tx_hash, sender, calls, **more)

    def add(self, transaction: Transaction, who: str) -> None:
        """Accept a transaction; a known one changes nothing."""
        self.sent.setdefault(transaction.hash, who)
        if who == "gateway" and not transaction.is_atomic:
            self.batches[transaction.hash] = transaction.calls
        known = any(other.hash == transaction.hash for other in self.pending)
        if known or transaction.hash in self.state.mined:
            return
        for other in self.pending:
            is_same = transaction.nonce is not None and other.nonce == transaction.nonce
            if is_same and other.sender == transaction.sender:
                if transaction.fee < other.fee * _RAISE:
                    raise Underpriced
                self.pending.remove(other)
                break
        self.pending.append(transaction)
        soonest = self._next_round(self.head_number)
        if soonest < self._next:
            self._timer.cancel()
            self._plan(soonest)
        if self.world.is_traced:
            self.world.note(f"{who} sends {transaction.hash[:10]} nonce {transaction.nonce}")

    # -- blocks

    def _plan(self, number: int) -> None:
        """Make the block with this number in its time; those before it will be empty."""
        self._next = number
        moment = (self.pace.time_of(number) - EPOCH * 1000) / 1000
        self._timer = self.world.loop.call_at(moment, self._tick, context=self._context.copy())

    def _next_round(self, number: int) -> int:
        """Return the next block after this one that may include transactions."""
        passed = self.pace.time_of(number) // self._round_ms
        return self.pace.first_from((passed + 1) * self._round_ms)

    def _tick(self) -> None:
        number = self._next
        if self.world.strikes(self.world.odds.reorganised, "block replaced"):
            self._reorganise()
        chosen = self._choose() if self._next_round(number - 1) == number else []
        if chosen:
            self._append(number, self.state, chosen)
            self._plan(number + 1)  # this block may be replaced
        elif self.pending:
            self._plan(self._next_round(number))
        else:
            self._plan(max(self.pace.newest(self.pace.time_of(number) + _IDLE_MS), number + 1))

    def _choose(self) -> list[Transaction]:
        """Take the transactions of the next block out of the mempool."""
        chosen, left, counts = [], [], dict(self.state.counts)
        for transaction in self.pending:
            fate = self._fate(transaction, counts)
            if fate == "mined":
                chosen.append(transaction)
            elif fate == "waits":
                left.append(transaction)
        self.pending = left
        return chosen

    def _fate(self, transaction: Transaction, counts: dict[str, int]) -> str:
        world = self.world
        if transaction.nonce is not None and transaction.nonce < counts.get(transaction.sender, 0):
            return "gone"
        if transaction.nonce is not None and transaction.nonce > counts.get(transaction.sender, 0):
            return "waits"
        if not transaction.is_sticky and world.strikes(world.odds.dropped, "transaction dropped"):
            return "gone"
        waits = not world.is_healed and world.dice.random() < world.odds.not_mined
        if transaction.fee < self.base_fee or waits:
            return "waits"
        counts[transaction.sender] = counts.get(transaction.sender, 0) + 1
        return "mined"

    def _append(self, number: int, before: State, chosen: list[Transaction]) -> None:
        block_hash, timestamp = self._name(number), self._time_of(number)
        state = before
        if chosen:
            state = before.copy()
            index = self.world.dice.randrange(4)  # logs of strangers come first
            for transaction in chosen:
                receipt = self._execute(transaction, state, number, timestamp, block_hash, index)
                state.mined[transaction.hash] = receipt
                self.versions[transaction.hash].append(receipt)
                index += len(receipt.logs)
        self.kept.append(MinedBlock(number, block_hash, timestamp, state, tuple(chosen)))

    def _execute(
        self,
        transaction: Transaction,
        state: State,
        number: int,
        timestamp: int,
        block_hash: str,
        index: int,
    ) -> Receipt:
        state.counts[transaction.sender] = state.counts.get(transaction.sender, 0) + 1
        # It may have burned gas in a block that is being replaced.
        self.burned.discard(transaction.hash)
        raw, succeeded, gas_used = [], True, _GAS_OF_CALL * len(transaction.calls)
        used, balances, refusing = dict(state.used), dict(state.balances), state.refusing
        calls = self._calls_with_gas(transaction)
        if calls is None:
            raw, succeeded, calls = [], False, ()
        for call in calls:
            if how := self._burns(transaction, call, state, timestamp):
                self.burned.add(transaction.hash)
                gas_used += _BURNED_GAS
                if how == UNDOING:
                    raw, succeeded = [], False
                    state.used, state.balances, state.refusing = used, balances, refusing
                    break
            try:
                raw += self.token.run(call, state, timestamp, transaction.hash)
            except CallReverted:
                if self.sent.get(transaction.hash) == "gateway":
                    self.failed_calls.add((timestamp, call))
                if transaction.is_atomic:
                    raw, succeeded = [], False
                    state.used, state.balances, state.refusing = used, balances, refusing
                    break
        if self.world.is_traced:
            self.world.note(
                f"block {number}: {transaction.hash[:10]} {'ok' if succeeded else 'reverted'}"
                f" {len(raw)} logs from {index}"
            )
        return Receipt(
            tx_hash=transaction.hash,
            succeeded=succeeded,
            block=Block(number=number, hash=block_hash, timestamp=timestamp),
            logs=receipt_logs(raw, index),
            gas_used=gas_used,
            fee_wei=gas_used * self.base_fee,
        )

    def _burns(self, transaction: Transaction, call: Call, state: State, timestamp: int) -> int:
        """Return how the gateway's call burns gas; a single paying call may use its own."""
        if self.sent.get(transaction.hash) != "gateway":
            return 0
        how = self.token.burns(call, state, timestamp)
        return how if how == UNDOING or transaction.hash in self.batches else 0

    def preconfirm(self, transaction: Transaction) -> Receipt:
        """Return the receipt of a node that returns receipts before blocks.

        It runs each alone on the newest block, so order and outcome may differ in the end, and no
        block will have its hash.
        """
        dice, number = self.world.dice, self.head_number + 1
        timestamp = self._time_of(number)
        raw, succeeded, state = [], dice.random() < _RIGHT, self.state.copy()
        for call in transaction.calls if succeeded else ():
            try:
                raw += self.token.run(call, state, timestamp, transaction.hash)
            except CallReverted:
                if transaction.is_atomic:
                    raw, succeeded = [], False
                    break
        block_hash = dice.choice((_ZERO_HASH, self._name(number)))
        return Receipt(
            tx_hash=transaction.hash,
            succeeded=succeeded,
            block=Block(number=number, hash=block_hash, timestamp=timestamp),
            logs=receipt_logs(raw, dice.randrange(4)),
        )

    def _calls_with_gas(self, transaction: Transaction) -> tuple[Call, ...] | None:
        """Return the calls that have enough gas; None if the transaction itself has too little.

        A call that uses up its gas leaves little for later ones, which fail as well. The same
        happens in a replaced block: confirmations=1 tolerates no more.
        """
        calls = transaction.calls
        if transaction.hash not in self.batches:
            return calls
        if transaction.hash not in self._gas_ends:
            runs_out = self.world.strikes(self.batch_trouble, "batch out of gas")
            end = self.world.dice.randrange(-1, len(calls)) if runs_out else len(calls)
            self._gas_ends[transaction.hash] = end
        end = self._gas_ends[transaction.hash]
        return calls[:end] if end >= 0 else None

    def _reorganise(self) -> None:
        """Replace the newest block: the same transactions in other places, perhaps after a copy.

        One block deep and nothing lost: confirmations=1 tolerates no more. Only a paying call is
        copied: gas-burning code in front would undo the settlement.
        """
        lost = self.head
        if self.kept[-1] is lost:
            self.kept.pop()
        self.orphans[lost.number] = lost
        chosen = list(lost.transactions)
        settled = {call.data for transaction in chosen for call in transaction.calls}
        for transaction in self.pending:
            calls = {call.data for call in transaction.calls}
            is_copy = calls <= settled and all(data[:4] == TRANSFER_VRS for data in calls)
            if is_copy and transaction.nonce is None:
                self.pending.remove(transaction)
                chosen.insert(0, transaction)
                break
        self._append(lost.number, self.state, chosen)
