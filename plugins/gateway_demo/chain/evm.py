"""Builds blocks from transactions by py-evm's Cancun rules.

It uses py-evm's states and headers, but not its `Chain` or eth-tester: they need a second per
block, store the chain id twice and search every block for a transaction.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import attrs
import rlp
from eth.abc import BlockHeaderAPI, ReceiptAPI, SignedTransactionAPI, StateAPI
from eth.constants import BLANK_ROOT_HASH, CREATE_CONTRACT_ADDRESS, ZERO_HASH32
from eth.db.atomic import AtomicDB
from eth.db.trie import make_trie_root_and_nodes
from eth.vm.chain_context import ChainContext
from eth.vm.forks.cancun import CancunVM
from eth.vm.forks.cancun.blocks import CancunBlockHeader
from eth_bloom.bloom import BloomFilter
from eth_typing import Address, BlockNumber, Hash32
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError

# Base's lowest base fee. It is constant here, so that costs are predictable.
BASE_FEE_WEI: Final = 5_000_000
GAS_LIMIT: Final = 60_000_000
# Enough for hundreds of nested contract calls. py-evm sets 12,288 and py_ecc 100,000; with these a
# deeply nested JSON body overflows the C stack and kills the process.
sys.setrecursionlimit(min(sys.getrecursionlimit(), 3_000))
_NUMBER_BYTES: Final = 8
# Base's coinbase.
FEE_VAULT: Final = Address(bytes.fromhex("4200000000000000000000000000000000000011"))


@attrs.frozen(kw_only=True, eq=False)
class Executed:
    """A mined transaction with its receipt and its position in the block."""

    transaction: SignedTransactionAPI
    receipt: ReceiptAPI
    index: int
    first_log: int
    gas_used: int
    gas_price_wei: int

    @property
    def contract_address(self) -> bytes | None:
        """The address of the contract that the transaction created."""
        if self.transaction.to != CREATE_CONTRACT_ADDRESS:
            return None
        return keccak(rlp.encode([self.transaction.sender, self.transaction.nonce]))[12:]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Block:
    """A block; empty ones between two others are not stored but made again when somebody asks.

    So time costs nothing while nobody sends anything. The hash of such a block follows from the
    block before the gap and the number; it is not the hash of its header.
    """

    header: BlockHeaderAPI
    # The stored block before it; the genesis block has none.
    ancestor: Block | None
    # Full Unix time, of which the header has only the seconds.
    timestamp_ms: int
    # From this block to the next, if it is empty.
    pace_ms: int
    executed: tuple[Executed, ...] = ()
    _made_hash: Hash32 | None = None

    @property
    def number(self) -> int:
        """The block's height."""
        return self.header.block_number

    @property
    def timestamp(self) -> int:
        """The block's time in Unix seconds."""
        return self.header.timestamp

    @property
    def hash(self) -> Hash32:
        """The block's hash, 32 bytes."""
        return self._made_hash or self.header.hash

    @property
    def parent(self) -> Block | None:
        """The block with the number before."""
        if self.ancestor is None or self.ancestor.number == self.number - 1:
            return self.ancestor
        return self.ancestor.empty(self.number - 1)

    def ancestors(self) -> Iterator[Block]:
        """Yield the blocks from this one to the genesis block."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent

    def empty(self, number: int) -> Block:
        """Return the empty block with a later number, if nothing happened since this one."""
        time_ms = self.timestamp_ms + (number - self.number) * self.pace_ms
        header = _make_header(
            number=number,
            timestamp=time_ms // 1000,
            parent_hash=self._hash_of(number - 1),
            state_root=self.header.state_root,
        )
        return Block(
            header=header,
            ancestor=self,
            timestamp_ms=time_ms,
            pace_ms=self.pace_ms,
            made_hash=self._hash_of(number),
        )

    def _hash_of(self, number: int) -> Hash32:
        if number == self.number:
            return self.hash
        size = _NUMBER_BYTES
        name = keccak(self.hash + number.to_bytes(size, "big"))
        return Hash32(name[:-size] + number.to_bytes(size, "big"))


def number_in(block_hash: bytes) -> int:
    """Return the number that ends the hash of an empty block."""
    return int.from_bytes(block_hash[-_NUMBER_BYTES:], "big")


@attrs.define
class Evm:
    """The chain's storage and rules. Not thread-safe."""

    chain_id: int
    _db: AtomicDB = attrs.field(factory=AtomicDB, init=False)

    def genesis(self, timestamp_ms: int, pace_ms: int, edit: Callable[[StateAPI], None]) -> Block:
        """Make block 0, with the state that `edit` writes."""
        header = _make_header(number=0, timestamp=timestamp_ms // 1000)
        state = self._open_state(header, header.state_root, ())
        edit(state)
        state.persist()
        return Block(
            header=header.copy(state_root=state.state_root),
            ancestor=None,
            timestamp_ms=timestamp_ms,
            pace_ms=pace_ms,
        )

    def state(self, block: Block, *, base_fee_wei: int = BASE_FEE_WEI) -> StateAPI:
        """Open the state after `block`, with its number and time; writes are discarded."""
        header = block.header.copy(base_fee_per_gas=base_fee_wei)
        before = itertools.islice(block.ancestors(), 1, None)
        return self._open_state(header, block.header.state_root, before)

    def extend(
        self,
        parent: Block,
        transactions: Iterable[SignedTransactionAPI],
        *,
        timestamp_ms: int,
        edit: Callable[[StateAPI], None] = lambda _: None,
    ) -> Block:
        """Build the next block from the given transactions, leaving out invalid ones.

        `edit` writes to the state before the first transaction. `timestamp_ms` is Unix time and
        raised to the parent's if it is earlier.
        """
        timestamp_ms = max(timestamp_ms, parent.timestamp_ms)
        header = _make_header(
            number=parent.number + 1,
            timestamp=timestamp_ms // 1000,
            parent_hash=parent.hash,
            # Random, so that a block mined again after a revert has another hash.
            mix_hash=Hash32(os.urandom(32)),
        )
        state = self._open_state(header, parent.header.state_root, parent.ancestors())
        edit(state)
        executed: list[Executed] = []
        for transaction in transactions:
            done = _execute(state, header, transaction, executed)
            if done is not None:
                header = _add_receipt(header, done.receipt)
                executed.append(done)
        return Block(
            header=_seal(header, state, executed),
            ancestor=parent,
            timestamp_ms=timestamp_ms,
            pace_ms=parent.pace_ms,
            executed=tuple(executed),
        )

    def _open_state(self, header: BlockHeaderAPI, root: bytes, before: Iterable[Block]) -> StateAPI:
        hashes = (block.hash for block in before)
        context = CancunVM.create_execution_context(header, hashes, ChainContext(self.chain_id))
        return CancunVM.get_state_class()(self._db, context, root)


def _make_header(
    *,
    number: int,
    timestamp: int,
    parent_hash: Hash32 = ZERO_HASH32,
    mix_hash: Hash32 = ZERO_HASH32,
    state_root: Hash32 = BLANK_ROOT_HASH,
) -> BlockHeaderAPI:
    return CancunBlockHeader(
        block_number=BlockNumber(number),
        timestamp=timestamp,
        difficulty=0,
        gas_limit=GAS_LIMIT,
        base_fee_per_gas=BASE_FEE_WEI,
        coinbase=FEE_VAULT,
        nonce=bytes(8),
        parent_hash=parent_hash,
        mix_hash=mix_hash,
        state_root=state_root,
    )


def _execute(
    state: StateAPI,
    header: BlockHeaderAPI,
    transaction: SignedTransactionAPI,
    before: list[Executed],
) -> Executed | None:
    """Run a transaction; None, without a change, if the rules reject it in this block."""
    if header.gas_used + transaction.gas > header.gas_limit:
        return None
    state.lock_changes()
    try:
        computation = state.apply_transaction(transaction)
    except ValidationError:
        # Wrong nonce, balance or fee. py-evm raises this before it changes anything.
        return None
    receipt = CancunVM.make_receipt(header, transaction, computation, state)
    return Executed(
        transaction=transaction,
        receipt=receipt,
        index=len(before),
        first_log=sum(len(done.receipt.logs) for done in before),
        gas_used=receipt.gas_used - header.gas_used,
        gas_price_wei=state.get_transaction_context(transaction).gas_price,
    )


def _add_receipt(header: BlockHeaderAPI, receipt: ReceiptAPI) -> BlockHeaderAPI:
    bloom = int(BloomFilter(header.bloom) | receipt.bloom)
    return header.copy(bloom=bloom, gas_used=receipt.gas_used)


def _seal(header: BlockHeaderAPI, state: StateAPI, executed: list[Executed]) -> BlockHeaderAPI:
    state.persist()
    transaction_root, _ = make_trie_root_and_nodes([done.transaction for done in executed])
    receipt_root, _ = make_trie_root_and_nodes([done.receipt for done in executed])
    return header.copy(
        state_root=state.state_root,
        transaction_root=transaction_root,
        receipt_root=receipt_root,
    )
