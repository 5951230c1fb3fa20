"""Signs and parses EIP-1559 transactions, about ten times faster than eth_account."""

import functools
from types import ModuleType
from typing import TypedDict

from btclib_secp256k1 import recovery
from eth_hash.auto import keccak

from gateway.concurrency.late_imports import import_ethereum

# The type of an EIP-1559 transaction (EIP-2718).
_TYPE = b"\x02"


class Transaction(TypedDict):
    """The fields of an EIP-1559 transaction without an access list; fees in wei per gas."""

    chainId: int
    nonce: int
    maxPriorityFeePerGas: int
    maxFeePerGas: int
    gas: int
    to: bytes
    value: int
    data: bytes


@functools.cache
def _import_rlp() -> ModuleType:
    return import_ethereum("rlp")


def sign_transaction(secret: bytes, transaction: Transaction) -> tuple[str, bytes]:
    """Sign a transaction; returns (hash, raw bytes), identical to eth_account's."""
    rlp = _import_rlp()
    fields = [
        _big_endian(transaction["chainId"]),
        _big_endian(transaction["nonce"]),
        _big_endian(transaction["maxPriorityFeePerGas"]),
        _big_endian(transaction["maxFeePerGas"]),
        _big_endian(transaction["gas"]),
        transaction["to"],
        _big_endian(transaction["value"]),
        transaction["data"],
        # The access list.
        [],
    ]
    digest = keccak(_TYPE + rlp.encode(fields))
    signature, recovery_id = recovery.sign(digest, secret)
    r, s = signature[:32].lstrip(b"\0"), signature[32:].lstrip(b"\0")
    raw = _TYPE + bytes(rlp.encode([*fields, _big_endian(recovery_id), r, s]))
    return "0x" + keccak(raw).hex(), raw


def read_transaction(raw: bytes) -> Transaction:
    """Parse a transaction signed by `sign_transaction`."""
    rlp = _import_rlp()
    chain_id, nonce, priority, fee, gas, to, value, data, *_ = rlp.decode(raw[len(_TYPE) :])
    return {
        "chainId": int.from_bytes(chain_id, "big"),
        "nonce": int.from_bytes(nonce, "big"),
        "maxPriorityFeePerGas": int.from_bytes(priority, "big"),
        "maxFeePerGas": int.from_bytes(fee, "big"),
        "gas": int.from_bytes(gas, "big"),
        "to": bytes(to),
        "value": int.from_bytes(value, "big"),
        "data": bytes(data),
    }


def _big_endian(number: int) -> bytes:
    """Encode a number for RLP: without leading zeros, and empty for zero."""
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
