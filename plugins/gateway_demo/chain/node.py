"""The node of the embedded chain: blocks, pending transactions, the clock, and mining."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Final

import attrs
from eth.abc import SignedTransactionAPI, StateAPI
from eth_utils.address import to_canonical_address

from gateway_demo.chain.evm import Block, Evm, Executed
from gateway_demo.chain.faults import RpcFault
from gateway_demo.chain.pool import Pool
from gateway_demo.token import TOTAL_SUPPLY_SLOT, balance_slot

# Base's block time.
BLOCK_TIME_S: Final = 2
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
        """Start a chain with the genesis state that `edit` writes."""
        evm = Evm(chain_id)
        return cls(evm, clock, [evm.genesis(int(clock()), edit)])

    @property
    def head(self) -> Block:
        """The latest block."""
        return self._canonical[-1]

    @property
    def now_s(self) -> int:
        """The wall time plus the total of `advance`, in Unix seconds."""
        return int(self._clock() + self._offset_s)

    def keep_up(self) -> None:
        """Mine an empty block if the latest is older than the block time."""
        if self.automine and self.now_s - self.head.timestamp >= BLOCK_TIME_S:
            self.mine()

    def send(self, raw: bytes) -> bytes:
        """Accept a signed transaction, mine it if automine is on, and return its hash."""
        transaction = self.pool.add(raw, self.evm.state(self.head))
        if self.automine:
            self.mine()
        return transaction.hash

    def mine(self, edit: Callable[[StateAPI], None] = lambda _: None) -> Block:
        """Mine a block with every pending transaction that fits."""
        return self._append(self.preview(edit))

    def preview(self, edit: Callable[[StateAPI], None] = lambda _: None) -> Block:
        """Return the `pending` block: the one that `mine` would mine now."""
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
        """Mine each transaction at once from now on, or only when `mine` is called."""
        self.automine = on
        if on and self.pool.waiting:
            self.mine()

    def advance(self, seconds: float) -> None:
        """Move the clock forward and mine a block there."""
        self._offset_s += seconds
        self.mine()

    def snapshot(self) -> int:
        """Return a number by which `revert` restores the current state."""
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
        for block in self._canonical[snapshot.head.number + 1 :]:
            for executed in block.executed:
                self._mined.pop(executed.transaction.hash, None)
        del self._canonical[snapshot.head.number + 1 :]
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
            return self._canonical[0]
        if ref in _HEAD_TAGS:
            return self.head
        return self._canonical[ref] if isinstance(ref, int) and ref <= self.head.number else None

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
