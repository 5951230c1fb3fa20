"""Blocks, transactions, receipts and logs in JSON-RPC format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rlp
from eth.abc import SignedTransactionAPI
from eth.constants import CREATE_CONTRACT_ADDRESS
from eth_utils.address import to_checksum_address

from gateway_demo.chain.evm import Block, Executed

Json = dict[str, Any]


def data(value: bytes) -> str:
    """Write bytes."""
    return "0x" + value.hex()


def word(value: int, size: int = 32) -> str:
    """Write a number as `size` bytes, 32 by default."""
    return data(value.to_bytes(size, "big"))


def block(value: Block, *, full: bool) -> Json:
    """Write a block with whole transactions, or with their hashes."""
    header = value.header
    transactions: list[Any] = [
        transaction(done.transaction, value, done) if full else data(done.transaction.hash)
        for done in value.executed
    ]
    return {
        "number": hex(header.block_number),
        "hash": data(value.hash),
        "parentHash": data(header.parent_hash),
        "nonce": data(header.nonce),
        "sha3Uncles": data(header.uncles_hash),
        "logsBloom": word(header.bloom, 256),
        "transactionsRoot": data(header.transaction_root),
        "stateRoot": data(header.state_root),
        "receiptsRoot": data(header.receipt_root),
        "miner": data(header.coinbase),
        "difficulty": "0x0",
        "totalDifficulty": "0x0",
        "extraData": data(header.extra_data),
        "size": hex(len(rlp.encode(header))),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
        "baseFeePerGas": hex(header.base_fee_per_gas or 0),
        "mixHash": data(header.mix_hash),
        "transactions": transactions,
        "uncles": [],
        "withdrawals": [],
        "withdrawalsRoot": data(header.withdrawals_root or b""),
        "blobGasUsed": "0x0",
        "excessBlobGas": "0x0",
        "parentBeaconBlockRoot": data(header.parent_beacon_block_root or b""),
        **_write_time("timestampMs", value),
    }


def pending_block(value: Block, *, full: bool) -> Json:
    """Write the `pending` block; its hash, nonce, bloom and miner are null."""
    unknown = dict.fromkeys(("hash", "nonce", "logsBloom", "miner"))
    transactions: list[Any] = [
        transaction(done.transaction) if full else data(done.transaction.hash)
        for done in value.executed
    ]
    return {**block(value, full=False), **unknown, "transactions": transactions}


def transaction(
    value: SignedTransactionAPI, where: Block | None = None, done: Executed | None = None
) -> Json:
    """Write a transaction; without `where` it is pending."""
    fields = {
        "blockHash": data(where.hash) if where else None,
        "blockNumber": hex(where.number) if where else None,
        "transactionIndex": hex(done.index) if done else None,
        "hash": data(value.hash),
        "type": hex(value.type_id or 0),
        "chainId": hex(value.chain_id or 0),
        "nonce": hex(value.nonce),
        "from": to_checksum_address(value.sender),
        "to": _write_address(value.to),
        "value": hex(value.value),
        "gas": hex(value.gas),
        "gasPrice": hex(done.gas_price_wei if done else value.max_fee_per_gas),
        "input": data(value.data),
        "r": hex(value.r),
        "s": hex(value.s),
    }
    time = _write_time("blockTimestampMs", where) if where else {}
    return {**fields, **time, **_write_typed_fields(value)}


def receipt(where: Block, done: Executed) -> Json:
    """Write a receipt."""
    value = done.transaction
    created = done.contract_address
    return {
        "transactionHash": data(value.hash),
        "transactionIndex": hex(done.index),
        "blockHash": data(where.hash),
        "blockNumber": hex(where.number),
        "from": to_checksum_address(value.sender),
        "to": _write_address(value.to),
        "contractAddress": to_checksum_address(created) if created else None,
        "cumulativeGasUsed": hex(done.receipt.gas_used),
        "gasUsed": hex(done.gas_used),
        "effectiveGasPrice": hex(done.gas_price_wei),
        "logs": list(logs(where, done)),
        "logsBloom": word(done.receipt.bloom, 256),
        "status": "0x1" if done.receipt.state_root == b"\x01" else "0x0",
        "type": hex(value.type_id or 0),
    }


def logs(where: Block, done: Executed) -> Iterator[Json]:
    """Write a transaction's logs, numbered within their block."""
    for offset, log in enumerate(done.receipt.logs):
        yield {
            "address": to_checksum_address(log.address),
            "topics": [word(topic) for topic in log.topics],
            "data": data(log.data),
            "blockNumber": hex(where.number),
            "blockHash": data(where.hash),
            "blockTimestamp": hex(where.timestamp),
            **_write_time("blockTimestampMs", where),
            "transactionHash": data(done.transaction.hash),
            "transactionIndex": hex(done.index),
            "logIndex": hex(done.first_log + offset),
            "removed": False,
        }


def _write_time(name: str, where: Block) -> Json:
    """Write Base's optional field; a chain of whole seconds between blocks has none."""
    return {name: hex(where.timestamp_ms)} if where.pace_ms % 1000 else {}


def _write_typed_fields(value: SignedTransactionAPI) -> Json:
    if value.type_id is None:
        # Only legacy transactions have the attribute.
        return {"v": hex(value.v)}  # type: ignore[attr-defined]
    fields: Json = {
        "v": hex(value.y_parity),
        "yParity": hex(value.y_parity),
        "accessList": [
            {"address": to_checksum_address(address), "storageKeys": [word(key) for key in keys]}
            for address, keys in value.access_list
        ],
    }
    if value.type_id == 1:
        return fields
    fields["maxFeePerGas"] = hex(value.max_fee_per_gas)
    fields["maxPriorityFeePerGas"] = hex(value.max_priority_fee_per_gas)
    return fields


def _write_address(value: bytes) -> str | None:
    return None if value == CREATE_CONTRACT_ADDRESS else to_checksum_address(value)
