"""The JSON-RPC methods of the embedded chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
from eth_utils.crypto import keccak

from gateway_demo.chain import calls as chain_calls
from gateway_demo.chain import json_values as chain_json
from gateway_demo.chain import logs as chain_logs
from gateway_demo.chain import params as chain_params
from gateway_demo.chain.evm import BASE_FEE_WEI, GAS_LIMIT
from gateway_demo.chain.faults import INVALID_PARAMS, RpcFault
from gateway_demo.chain.json_values import Json
from gateway_demo.chain.node import BlockHash, BlockRef, Node

TIP_WEI: Final = 1_000_000
MAX_HISTORY: Final = 1024  # blocks
Method = Callable[..., Any]


@attrs.frozen
class Methods:
    """The methods, from JSON parameters to JSON results; the caller holds the node's lock.

    Each raises `RpcFault` for parameters that geth rejects.
    """

    node: Node

    def table(self) -> dict[str, Method]:
        """Return the methods by their JSON-RPC names."""
        return {
            "eth_chainId": self.chain_id,
            "net_version": lambda: str(self.node.evm.chain_id),
            "net_listening": lambda: True,
            "web3_clientVersion": lambda: "PlayChain/py-evm",
            "web3_sha3": lambda value: chain_json.data(keccak(chain_params.data(value))),
            "eth_syncing": lambda: False,
            "eth_accounts": list,
            "eth_blockNumber": lambda: hex(self.node.head.number),
            "eth_gasPrice": lambda: hex(BASE_FEE_WEI + TIP_WEI),
            "eth_maxPriorityFeePerGas": lambda: hex(TIP_WEI),
            "eth_feeHistory": self.fee_history,
            "eth_getBlockByNumber": self.block_by_number,
            "eth_getBlockByHash": self.block_by_hash,
            "eth_getBlockReceipts": self.block_receipts,
            "eth_getBalance": self.balance,
            "eth_getCode": self.code,
            "eth_getStorageAt": self.storage_at,
            "eth_getTransactionCount": self.transaction_count,
            "eth_call": self.call,
            "eth_estimateGas": self.estimate_gas,
            "eth_sendRawTransaction": self.send_raw_transaction,
            "eth_getTransactionByHash": self.transaction_by_hash,
            "eth_getTransactionReceipt": self.transaction_receipt,
            "eth_getLogs": lambda query: chain_logs.find_logs(self.node, query),
        }

    def chain_id(self) -> str:
        """`eth_chainId`."""
        return hex(self.node.evm.chain_id)

    def fee_history(self, count: Any, newest: Any, percentiles: Any = None) -> Json:
        """`eth_feeHistory`, as if every tip had been `TIP_WEI`."""
        wanted = count if isinstance(count, int) else chain_params.quantity(count)
        last = self.node.at(chain_params.block_ref(newest)).number
        first = max(0, last + 1 - min(wanted, MAX_HISTORY))
        blocks = self.node.between(first, last)
        history: Json = {
            "oldestBlock": hex(first),
            "baseFeePerGas": [hex(BASE_FEE_WEI)] * (len(blocks) + 1),
            "gasUsedRatio": [block.header.gas_used / GAS_LIMIT for block in blocks],
        }
        if percentiles:
            history["reward"] = [[hex(TIP_WEI)] * len(percentiles) for _ in blocks]
        return history

    # Parameters are positional in JSON-RPC, so `full` is too, here and below.
    def block_by_number(self, ref: Any, full: Any = False) -> Json | None:  # noqa: FBT002
        """`eth_getBlockByNumber`; null if there is no such block."""
        read = chain_params.block_ref(ref)
        block = self.node.find(read)
        if block is None:
            return None
        write = chain_json.pending_block if read == "pending" else chain_json.block
        return write(block, full=bool(full))

    def block_by_hash(self, value: Any, full: Any = False) -> Json | None:  # noqa: FBT002
        """`eth_getBlockByHash`."""
        block = self.node.find(_read_block_hash(value))
        return None if block is None else chain_json.block(block, full=bool(full))

    def block_receipts(self, ref: Any) -> list[Json] | None:
        """`eth_getBlockReceipts`."""
        block = self.node.find(_read_mined_block(ref))
        if block is None:
            return None
        return [chain_json.receipt(block, done) for done in block.executed]

    def balance(self, owner: Any, ref: Any = "latest") -> str:
        """`eth_getBalance`."""
        address = chain_params.address(owner)
        return hex(self._open_state(ref).get_balance(address))

    def code(self, owner: Any, ref: Any = "latest") -> str:
        """`eth_getCode`."""
        address = chain_params.address(owner)
        return chain_json.data(self._open_state(ref).get_code(address))

    def storage_at(self, owner: Any, slot: Any, ref: Any = "latest") -> str:
        """`eth_getStorageAt`."""
        address, key = chain_params.address(owner), chain_params.quantity(slot)
        return chain_json.word(self._open_state(ref).get_storage(address, key))

    def transaction_count(self, owner: Any, ref: Any = "latest") -> str:
        """`eth_getTransactionCount`; `pending` counts consecutive pending transactions too."""
        address = chain_params.address(owner)
        if ref != "pending":
            return hex(self._open_state(ref).get_nonce(address))
        return hex(
            self.node.pool.next_nonce(address, self._open_state("latest").get_nonce(address))
        )

    def call(self, transaction: Any, ref: Any = "latest", overrides: Any = None) -> str:
        """`eth_call`."""
        if overrides:
            raise RpcFault("state overrides are not supported here", code=INVALID_PARAMS)
        message = chain_params.message(transaction)
        block = self.node.at(chain_params.block_ref(ref))
        return chain_json.data(chain_calls.call(self.node.evm, block, message))

    def estimate_gas(self, transaction: Any, ref: Any = "latest") -> str:
        """`eth_estimateGas`."""
        message = chain_params.message(transaction)
        block = self.node.at(chain_params.block_ref(ref))
        return hex(chain_calls.estimate_gas(self.node.evm, block, message))

    def send_raw_transaction(self, raw: Any) -> str:
        """`eth_sendRawTransaction`."""
        return chain_json.data(self.node.send(chain_params.data(raw)))

    def transaction_by_hash(self, value: Any) -> Json | None:
        """`eth_getTransactionByHash`, also for a pending transaction."""
        key = chain_params.fixed(value, chain_params.HASH_BYTES)
        if mined := self.node.find_mined(key):
            block, done = mined
            return chain_json.transaction(done.transaction, block, done)
        waiting = self.node.pool.waiting.get(key)
        return None if waiting is None else chain_json.transaction(waiting)

    def transaction_receipt(self, value: Any) -> Json | None:
        """`eth_getTransactionReceipt`; null until the transaction is mined."""
        mined = self.node.find_mined(chain_params.fixed(value, chain_params.HASH_BYTES))
        return chain_json.receipt(*mined) if mined else None

    def _open_state(self, ref: Any) -> Any:
        return self.node.evm.state(self.node.at(chain_params.block_ref(ref)))


def _read_block_hash(value: Any) -> BlockHash:
    return BlockHash(value=chain_params.fixed(value, chain_params.HASH_BYTES))


def _read_mined_block(ref: Any) -> BlockRef:
    read = chain_params.block_ref(ref)
    return "latest" if read == "pending" else read
