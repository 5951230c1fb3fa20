"""The node of the embedded chain: blocks, pending transactions, the clock, and mining."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Final

import attrs
from eth.abc import SignedTransactionAPI, StateAPI
from eth_utils.address import to_canonical_address

from gateway_demo.chain.evm import Block, Evm, Executed, number_in
from gateway_demo.chain.faults import RpcFault
from gateway_demo.chain.pool import Pool
from gateway_demo.token import TOTAL_SUPPLY_SLOT, balance_slot

# Base's block time since Denim: five blocks share a timestamp.
BLOCK_TIME_S: Final = 0.2
# On Base all blocks have such times.
_TICK_MS: Final = 200
# Tags of the latest block: here a mined block is safe and final at once.
_HEAD_TAGS: Final = ("latest", "safe", "finalized")


@attrs.frozen(kw_only=True)
class BlockHash:
    """A block's hash; `canonical` rejects a block that a revert has removed."""

    value: bytes
    canonical: bool = False


# A tag, a number or a hash.
BlockRef = str | int | BlockHash


@attrs.frozen(kw_only=True, eq=False)
class Snapshot:
    """The state to restore: the latest block and the pending transactions."""

    head: Block
    waiting: dict[bytes, SignedTransactionAPI]


@attrs.define(eq=False)
class Node:
    """One chain. The caller holds `lock` for every use: py-evm is not thread-safe."""

    evm: Evm
    _clock: Callable[[], float]
    # The canonical blocks, oldest first; the empty ones between them follow from their numbers.
    _stored: list[Block]
    _head: Block = attrs.field(init=False)
    pool: Pool = attrs.field(init=False)
    lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    automine: bool = attrs.field(default=True, init=False)
    _offset_s: float = attrs.field(default=0.0, init=False)
    _by_hash: dict[bytes, Block] = attrs.field(factory=dict, init=False)
    _mined: dict[bytes, tuple[Block, Executed]] = attrs.field(factory=dict, init=False)
    _snapshots: dict[int, Snapshot] = attrs.field(factory=dict, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)

    def __attrs_post_init__(self) -> None:
        self.pool = Pool(chain_id=self.evm.chain_id)
        self._by_hash = {block.hash: block for block in self._stored}
        self._head = self._stored[-1]

    @classmethod
    def start(
        cls,
        chain_id: int,
        clock: Callable[[], float],
        edit: Callable[[StateAPI], None],
        *,
        block_time_s: float = BLOCK_TIME_S,
    ) -> Node:
        """Start a chain with the genesis state that `edit` writes."""
        evm, pace_ms = Evm(chain_id), round(block_time_s * 1000)
        return cls(evm, clock, [evm.genesis(_floor_ms(clock()), pace_ms, edit)])

    @property
    def head(self) -> Block:
        """The latest block."""
        return self._head

    @property
    def now_ms(self) -> int:
        """The wall time plus the total of `advance`, rounded down to a time of Base's blocks."""
        return _floor_ms(self._clock() + self._offset_s)

    def keep_up(self) -> None:
        """Let the blocks of the time that has passed exist, without mining each of them."""
        last = self._stored[-1]
        passed = (self.now_ms - last.timestamp_ms) // last.pace_ms
        if self.automine and last.number + passed > self._head.number:
            self._head = last.empty(last.number + passed)

    def set_pace(self, block_time_s: float) -> None:
        """Change the time between blocks, from the latest block on."""
        self.keep_up()
        pace_ms = round(block_time_s * 1000)
        self._store_head()
        self._head = self._stored[-1] = attrs.evolve(self._head, pace_ms=pace_ms)
        self._by_hash[self._head.hash] = self._head

    def send(self, raw: bytes) -> bytes:
        """Accept a signed transaction, mine it if automine is on, and return its hash.

        It is mined at once, in the block whose time comes next: no block that contains it is older
        than its sending.
        """
        transaction = self.pool.add(raw, self.evm.state(self.head))
        if self.automine:
            self.mine()
        return transaction.hash

    def mine(self, edit: Callable[[StateAPI], None] = lambda _: None) -> Block:
        """Mine a block with every pending transaction that fits, at once."""
        self.keep_up()
        return self._append(self.preview(edit))

    def preview(self, edit: Callable[[StateAPI], None] = lambda _: None) -> Block:
        """Return the `pending` block: the one that `mine` would mine now."""
        waiting = self.pool.in_order()
        # A transaction is in the block whose time comes next.
        ahead_s = BLOCK_TIME_S if waiting else 0.0
        at_ms = _floor_ms(self._clock() + self._offset_s + ahead_s)
        return self.evm.extend(self.head, waiting, timestamp_ms=at_ms, edit=edit)

    def grant(self, address: str, *, eth_wei: int, usdc_units: int, token: str) -> None:
        """Give an account money, in a block without transactions and logs."""
        owner, contract = to_canonical_address(address), to_canonical_address(token)

        def edit(state: StateAPI) -> None:
            state.delta_balance(owner, eth_wei)
            for slot in (balance_slot(address), TOTAL_SUPPLY_SLOT):
                units = state.get_storage(contract, slot) + usdc_units
                state.set_storage(contract, slot, units)

        self.keep_up()
        self._append(self.evm.extend(self.head, (), timestamp_ms=self.now_ms, edit=edit))

    def set_automine(self, *, on: bool) -> None:
        """Mine each transaction at once from now on, or only when `mine` is called.

        Meanwhile the chain stands still, without the empty blocks that time makes.
        """
        if on and not self.automine:
            self.mine()
        self.keep_up()
        self._store_head()
        self.automine = on

    def advance(self, seconds: float) -> None:
        """Move the clock forward and mine a block there, after the empty ones of that time."""
        self._offset_s += seconds
        self.mine()

    def snapshot(self) -> int:
        """Return a number by which `revert` restores the current state."""
        self.keep_up()
        self._store_head()
        number = next(self._numbers)
        self._snapshots[number] = Snapshot(head=self.head, waiting=dict(self.pool.waiting))
        return number

    def revert(self, number: int) -> bool:
        """Restore a snapshot, as a reorganisation does, and forget later snapshots.

        The clock does not go back. Returns False if there is no such snapshot.
        """
        snapshot = self._snapshots.get(number)
        if snapshot is None:
            return False
        kept = self._count_stored(snapshot.head.number)
        for block in self._stored[kept:]:
            for executed in block.executed:
                self._mined.pop(executed.transaction.hash, None)
        del self._stored[kept:]
        self._head = self._stored[-1]
        self.pool.waiting = dict(snapshot.waiting)
        self._snapshots = {key: kept for key, kept in self._snapshots.items() if key <= number}
        return True

    def find(self, ref: BlockRef) -> Block | None:
        """Return a block, or None."""
        if isinstance(ref, BlockHash):
            return self._find_hash(ref)
        if ref == "pending":
            return self.preview()
        if ref == "earliest":
            return self._stored[0]
        if ref in _HEAD_TAGS:
            return self.head
        return self._find_number(ref) if isinstance(ref, int) else None

    def at(self, ref: BlockRef) -> Block:
        """Return a block; raises `RpcFault` if there is none."""
        block = self.find(ref)
        if block is not None:
            return block
        raise RpcFault(
            "header for hash not found" if isinstance(ref, BlockHash) else "header not found"
        )

    def find_mined(self, transaction_hash: bytes) -> tuple[Block, Executed] | None:
        """Return a mined transaction and its block, or None."""
        return self._mined.get(transaction_hash)

    def between(self, first: int, last: int) -> list[Block]:
        """Return the blocks from `first` to `last`, inclusive."""
        found = map(self._find_number, range(first, last + 1))
        return [block for block in found if block is not None]

    def with_transactions(self, first: int, last: int) -> list[Block]:
        """Return those blocks from `first` to `last`, inclusive, that may have transactions."""
        return self._stored[self._count_stored(first - 1) : self._count_stored(last)]

    def _count_stored(self, up_to: int) -> int:
        return bisect.bisect_right(self._stored, up_to, key=lambda block: block.number)

    def _find_number(self, number: int) -> Block | None:
        if number >= self._head.number:
            return self._head if number == self._head.number else None
        before = self._stored[self._count_stored(number) - 1]
        return before if before.number == number else before.empty(number)

    def _find_hash(self, ref: BlockHash) -> Block | None:
        block = self._by_hash.get(ref.value) or self._find_number(number_in(ref.value))
        if block is None or block.hash != ref.value:
            return None
        canonical = self._find_number(block.number)
        if ref.canonical and (canonical is None or canonical.hash != block.hash):
            raise RpcFault("hash is not currently canonical")
        return block

    def _store_head(self) -> None:
        """Store the latest block even if it is empty: later ones may not follow from it."""
        if self._stored[-1] is not self._head:
            self._stored.append(self._head)
            self._by_hash[self._head.hash] = self._head

    def _append(self, block: Block) -> Block:
        self._stored.append(block)
        self._head = block
        self._by_hash[block.hash] = block
        self._mined.update((done.transaction.hash, (block, done)) for done in block.executed)
        self.pool.forget_mined(self.evm.state(block))
        return block


def _floor_ms(now_s: float) -> int:
    return int(now_s * 1000) // _TICK_MS * _TICK_MS
