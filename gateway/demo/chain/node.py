"""The embedded chain's node: its blocks, its pool, its clock, and when it mines."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Final

import attrs
from eth.abc import SignedTransactionAPI, StateAPI
from eth_utils.address import to_canonical_address

from gateway.demo.chain.evm import Block, Evm, Executed
from gateway.demo.chain.faults import RpcFault
from gateway.demo.chain.pool import Pool
from gateway.demo.token import TOTAL_SUPPLY_SLOT, balance_slot

BLOCK_TIME_S: Final = 2  # Base's
_UNMOVING_TAGS: Final = ("latest", "safe", "finalized")


@attrs.frozen(kw_only=True)
class BlockHash:
    """A block named by its hash; `canonical` refuses one that a revert has left behind."""

    value: bytes
    canonical: bool = False


BlockRef = str | int | BlockHash  # a tag, a number or a hash


@attrs.frozen(kw_only=True, eq=False)
class Snapshot:
    """What a revert goes back to. Time does not go back."""

    head: Block
    waiting: dict[bytes, SignedTransactionAPI]


@attrs.define(eq=False)
class Node:
    """One chain. Take `lock` around every use: py-evm is not thread-safe."""

    evm: Evm
    _clock: Callable[[], float]
    _canonical: list[Block]
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
        self._by_hash = {block.hash: block for block in self._canonical}

    @classmethod
    def start(
        cls, chain_id: int, clock: Callable[[], float], edit: Callable[[StateAPI], None]
    ) -> Node:
        """Begin a chain whose genesis holds what `edit` writes."""
        evm = Evm(chain_id)
        return cls(evm, clock, [evm.genesis(int(clock()), edit)])

    @property
    def head(self) -> Block:
        """The latest block."""
        return self._canonical[-1]

    @property
    def now_s(self) -> int:
        """Wall time, and what `advance` added to it."""
        return int(self._clock() + self._offset_s)

    def keep_up(self) -> None:
        """Mine an empty block if the latest is stale: time passes without transactions, too."""
        if self.automine and self.now_s - self.head.timestamp >= BLOCK_TIME_S:
            self.mine()

    def send(self, raw: bytes) -> bytes:
        """Accept a signed transaction, mine it when mining is automatic, return its hash."""
        transaction = self.pool.add(raw, self.evm.state(self.head))
        if self.automine:
            self.mine()
        return transaction.hash

    def mine(self, edit: Callable[[StateAPI], None] = lambda _: None) -> Block:
        """Put every waiting transaction that fits into a block."""
        return self._append(self.preview(edit))

    def preview(self, edit: Callable[[StateAPI], None] = lambda _: None) -> Block:
        """Build the block that `mine` would mine now, the `pending` one."""
        waiting = self.pool.in_order()
        return self.evm.extend(self.head, waiting, timestamp=self.now_s, edit=edit)

    def grant(self, address: str, *, eth_wei: int, usdc_units: int, token: str) -> None:
        """Give an account money, in a block without transactions and logs."""
        owner, contract = to_canonical_address(address), to_canonical_address(token)

        def edit(state: StateAPI) -> None:
            state.delta_balance(owner, eth_wei)
            for slot in (balance_slot(address), TOTAL_SUPPLY_SLOT):
                units = state.get_storage(contract, slot) + usdc_units
                state.set_storage(contract, slot, units)

        self._append(self.evm.extend(self.head, (), timestamp=self.now_s, edit=edit))

    def set_automine(self, *, on: bool) -> None:
        """Mine at once from now on, or only when told to."""
        self.automine = on
        if on and self.pool.waiting:
            self.mine()

    def advance(self, seconds: float) -> None:
        """Move the clock forward and mine a block there."""
        self._offset_s += seconds
        self.mine()

    def snapshot(self) -> int:
        """Remember this moment and return a number for `revert`."""
        number = next(self._numbers)
        self._snapshots[number] = Snapshot(head=self.head, waiting=dict(self.pool.waiting))
        return number

    def revert(self, number: int) -> bool:
        """Go back to a snapshot, as a reorganisation does; it ends the later ones.

        False when there is no such one.
        """
        snapshot = self._snapshots.get(number)
        if snapshot is None:
            return False
        for block in self._canonical[snapshot.head.number + 1 :]:
            for executed in block.executed:
                self._mined.pop(executed.transaction.hash, None)
        del self._canonical[snapshot.head.number + 1 :]
        self.pool.waiting = dict(snapshot.waiting)
        self._snapshots = {key: kept for key, kept in self._snapshots.items() if key <= number}
        return True

    def find(self, ref: BlockRef) -> Block | None:
        """Look a block up; None when there is none."""
        if isinstance(ref, BlockHash):
            return self._find_hash(ref)
        if ref == "pending":
            return self.preview()
        if ref == "earliest":
            return self._canonical[0]
        if ref in _UNMOVING_TAGS:
            return self.head
        return self._canonical[ref] if isinstance(ref, int) and ref <= self.head.number else None

    def at(self, ref: BlockRef) -> Block:
        """Look a block up to read its state.

        Raises `RpcFault` when there is none.
        """
        block = self.find(ref)
        if block is not None:
            return block
        raise RpcFault(
            "header for hash not found" if isinstance(ref, BlockHash) else "header not found"
        )

    def find_mined(self, transaction_hash: bytes) -> tuple[Block, Executed] | None:
        """Look a mined transaction up."""
        return self._mined.get(transaction_hash)

    def between(self, first: int, last: int) -> list[Block]:
        """List the blocks of a range of numbers, both ends included."""
        return self._canonical[first : last + 1]

    def _find_hash(self, ref: BlockHash) -> Block | None:
        block = self._by_hash.get(ref.value)
        if block is None:
            return None
        if ref.canonical and self.find(block.number) is not block:
            raise RpcFault("hash is not currently canonical")
        return block

    def _append(self, block: Block) -> Block:
        self._canonical.append(block)
        self._by_hash[block.hash] = block
        self._mined.update((done.transaction.hash, (block, done)) for done in block.executed)
        self.pool.forget_mined(self.evm.state(block))
        return block
