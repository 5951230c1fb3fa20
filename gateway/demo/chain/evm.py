"""The machine of the embedded chain: py-evm's Cancun rules, turning transactions into blocks.

It stands on py-evm's states and headers and not on its `Chain` or on eth-tester: those insist on
one second a block, keep the chain id in two places and scan every block for a transaction.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import attrs
import rlp
from eth.abc import BlockHeaderAPI, ReceiptAPI, SignedTransactionAPI, StateAPI
from eth.constants import CREATE_CONTRACT_ADDRESS, ZERO_HASH32
from eth.db.atomic import AtomicDB
from eth.db.trie import make_trie_root_and_nodes
from eth.vm.chain_context import ChainContext
from eth.vm.forks.cancun import CancunVM
from eth.vm.forks.cancun.blocks import CancunBlockHeader
from eth_bloom.bloom import BloomFilter
from eth_typing import Address, BlockNumber, Hash32
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError

BASE_FEE_WEI: Final = 5_000_000  # Base's floor; constant here, so that costs are predictable
GAS_LIMIT: Final = 60_000_000
# Enough for hundreds of nested contract calls. py-evm asks for 12,288 and py_ecc for 100,000, with
# which a deeply nested JSON body overflows the C stack and kills the whole process.
sys.setrecursionlimit(min(sys.getrecursionlimit(), 3_000))
# Base's coinbase.
FEE_VAULT: Final = Address(bytes.fromhex("4200000000000000000000000000000000000011"))


@attrs.frozen(kw_only=True, eq=False)
class Executed:
    """A transaction, and what became of it."""

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
    """A mined block, linked to its parent; the genesis has none."""

    header: BlockHeaderAPI
    parent: Block | None
    executed: tuple[Executed, ...] = ()

    @property
    def number(self) -> int:
        """Its height."""
        return self.header.block_number

    @property
    def timestamp(self) -> int:
        """Its time in Unix seconds."""
        return self.header.timestamp

    @property
    def hash(self) -> Hash32:
        """Its hash, 32 bytes."""
        return self.header.hash

    def ancestors(self) -> Iterator[Block]:
        """Walk from this block to the genesis, both included."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent


@attrs.define
class Evm:
    """Everything that the chain has ever stored, and the rules that change it. Not thread-safe."""

    chain_id: int
    _db: AtomicDB = attrs.field(factory=AtomicDB, init=False)

    def genesis(self, timestamp: int, edit: Callable[[StateAPI], None]) -> Block:
        """Make block 0, with the state that `edit` writes."""
        header = _header(number=0, timestamp=timestamp)
        state = self._state(header, header.state_root, ())
        edit(state)
        state.persist()
        return Block(header=header.copy(state_root=state.state_root), parent=None)

    def state(self, block: Block, *, base_fee_wei: int = BASE_FEE_WEI) -> StateAPI:
        """Open the state after `block`, with that block's number and time; writes are forgotten."""
        header = block.header.copy(base_fee_per_gas=base_fee_wei)
        before = block.parent.ancestors() if block.parent else ()
        return self._state(header, block.header.state_root, before)

    def extend(
        self,
        parent: Block,
        transactions: Iterable[SignedTransactionAPI],
        *,
        timestamp: int,
        edit: Callable[[StateAPI], None] = lambda _: None,
    ) -> Block:
        """Build the next block of those transactions that the rules let in, in their order.

        `edit` writes to the state before the first of them. Block times may repeat (several
        instant blocks within one second) but never go back.
        """
        header = _header(
            number=parent.number + 1,
            timestamp=max(timestamp, parent.timestamp),
            parent_hash=parent.hash,
            mix_hash=Hash32(os.urandom(32)),  # also tells a block from its twin after a revert
        )
        state = self._state(header, parent.header.state_root, parent.ancestors())
        edit(state)
        executed: list[Executed] = []
        for transaction in transactions:
            done = _execute(state, header, transaction, executed)
            if done is not None:
                header = _with_receipt(header, done.receipt)
                executed.append(done)
        return Block(
            header=_sealed(header, state, executed), parent=parent, executed=tuple(executed)
        )

    def _state(self, header: BlockHeaderAPI, root: bytes, before: Iterable[Block]) -> StateAPI:
        hashes = (block.hash for block in before)
        context = CancunVM.create_execution_context(header, hashes, ChainContext(self.chain_id))
        return CancunVM.get_state_class()(self._db, context, root)


def _header(
    *,
    number: int,
    timestamp: int,
    parent_hash: Hash32 = ZERO_HASH32,
    mix_hash: Hash32 = ZERO_HASH32,
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
    )


def _execute(
    state: StateAPI,
    header: BlockHeaderAPI,
    transaction: SignedTransactionAPI,
    before: list[Executed],
) -> Executed | None:
    """Run a transaction; None, and no change, when the rules do not let it into this block."""
    if header.gas_used + transaction.gas > header.gas_limit:
        return None
    state.lock_changes()
    try:
        computation = state.apply_transaction(transaction)
    except ValidationError:  # raised before anything changes: nonce, balance or fee are not right
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


def _with_receipt(header: BlockHeaderAPI, receipt: ReceiptAPI) -> BlockHeaderAPI:
    bloom = int(BloomFilter(header.bloom) | receipt.bloom)
    return header.copy(bloom=bloom, gas_used=receipt.gas_used)


def _sealed(header: BlockHeaderAPI, state: StateAPI, executed: list[Executed]) -> BlockHeaderAPI:
    state.persist()
    transaction_root, _ = make_trie_root_and_nodes([done.transaction for done in executed])
    receipt_root, _ = make_trie_root_and_nodes([done.receipt for done in executed])
    return header.copy(
        state_root=state.state_root,
        transaction_root=transaction_root,
        receipt_root=receipt_root,
    )
