"""Signs and reads EIP-1559 transactions.

eth_account takes ten times as long, and with rlp it keeps 17 MB of modules in memory.
"""

from typing import TypedDict

from btclib_secp256k1 import recovery
from eth_hash.auto import keccak

# The type of an EIP-1559 transaction (EIP-2718).
_TYPE = b"\x02"
# RLP: the first byte of a string and of a list is this plus the length, if that is at most 55.
# Otherwise it is this plus 55 plus the bytes of the length, which follow.
_STRING, _LIST, _SHORT = 0x80, 0xC0, 55
_NO_ACCESS_LIST = bytes([_LIST])


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


def sign_transaction(secret: bytes, transaction: Transaction) -> tuple[str, bytes]:
    """Return (hash, raw bytes) of a signed transaction: the bytes that eth_account would give."""
    fields = [
        _big_endian(transaction["chainId"]),
        _big_endian(transaction["nonce"]),
        _big_endian(transaction["maxPriorityFeePerGas"]),
        _big_endian(transaction["maxFeePerGas"]),
        _big_endian(transaction["gas"]),
        transaction["to"],
        _big_endian(transaction["value"]),
        transaction["data"],
    ]
    encoded = [*map(_encode_bytes, fields), _NO_ACCESS_LIST]
    digest = keccak(_TYPE + _encode_list(encoded))
    signature, recovery_id = recovery.sign(digest, secret)
    r, s = signature[:32].lstrip(b"\0"), signature[32:].lstrip(b"\0")
    signed = [*encoded, *map(_encode_bytes, (_big_endian(recovery_id), r, s))]
    raw = _TYPE + _encode_list(signed)
    return "0x" + keccak(raw).hex(), raw


def read_transaction(raw: bytes) -> Transaction:
    """Return what was signed; `raw` are bytes that `sign_transaction` returned."""
    chain_id, nonce, priority, fee, gas, to, value, data, *_ = _decode_list(raw[len(_TYPE) :])
    return {
        "chainId": int.from_bytes(chain_id, "big"),
        "nonce": int.from_bytes(nonce, "big"),
        "maxPriorityFeePerGas": int.from_bytes(priority, "big"),
        "maxFeePerGas": int.from_bytes(fee, "big"),
        "gas": int.from_bytes(gas, "big"),
        "to": to,
        "value": int.from_bytes(value, "big"),
        "data": data,
    }


def _big_endian(number: int) -> bytes:
    """Return a number as RLP wants it: without leading zeros, and nothing for zero."""
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _encode_bytes(data: bytes) -> bytes:
    return data if len(data) == 1 and data[0] < _STRING else _head(_STRING, len(data)) + data


def _encode_list(encoded: list[bytes]) -> bytes:
    body = b"".join(encoded)
    return _head(_LIST, len(body)) + body


def _head(kind: int, length: int) -> bytes:
    if length <= _SHORT:
        return bytes([kind + length])
    size = _big_endian(length)
    return bytes([kind + _SHORT + len(size)]) + size


def _decode_list(encoded: bytes) -> list[bytes]:
    """Return the items of a list of our own making; an inner list is returned as its bytes."""
    start, _ = _content(encoded, 0)
    items = []
    while start < len(encoded):
        first, end = _content(encoded, start)
        items.append(encoded[first:end])
        start = end
    return items


def _content(encoded: bytes, at: int) -> tuple[int, int]:
    """Return where the content of the item at an index begins and ends."""
    prefix = encoded[at]
    if prefix < _STRING:
        return at, at + 1
    length = prefix - (_LIST if prefix >= _LIST else _STRING)
    start = at + 1
    if length > _SHORT:
        size = length - _SHORT
        length = int.from_bytes(encoded[start : start + size], "big")
        start += size
    return start, start + length
