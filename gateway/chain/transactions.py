"""Signs and parses EIP-1559 transactions, and encodes batches for Multicall3.

Signing is about ten times faster than by eth_account.
"""

import functools
from collections.abc import Awaitable, Callable, Sequence
from types import ModuleType
from typing import Any, TypedDict

import attrs
from btclib_secp256k1 import recovery
from btclib_secp256k1.keys import pubkey_from_prvkey
from eth_hash.auto import keccak

from gateway.concurrency.late_imports import import_ethereum
from gateway.domain.eip3009 import encoded_bytes, selector, uint, word

# The type of an EIP-1559 transaction (EIP-2718).
_TYPE = b"\x02"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Call:
    """A contract call: the contract, its calldata, and the gas limit."""

    to: str
    data: bytes
    gas: int


CountOf = Callable[[str], int | None]
"""Returns a key's mined transactions by its address, read beside a simulation; None once old."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Known:
    """What is known of a payment's call before it is signed."""

    is_first: bool = False
    """The payment is expected to have no transaction yet; the write checks that."""
    is_fresh: Callable[[], bool] = lambda: False
    """Whether a simulation has passed a moment ago, whichever key sends the call."""
    count_of: CountOf = lambda _: None
    simulate_plain: Callable[[], Awaitable[bool]] | None = None
    """Whether the call passes now, of a plain account, from any key; False if that is unknown."""


UNKNOWN = Known()


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


def _encode(fields: list[Any]) -> bytes:
    """Encode byte strings and lists of them as RLP."""
    # They need no serializer, and finding out takes two thirds of the time.
    return bytes(_import_rlp().encode(fields, infer_serializer=False))


@functools.lru_cache(maxsize=16)
def _public_key(secret: bytes) -> bytes:
    """Return the key by which a signature is checked; deriving it takes a fifth of signing."""
    return pubkey_from_prvkey(secret, compressed=False)


def sign_transaction(secret: bytes, transaction: Transaction) -> tuple[str, bytes]:
    """Sign a transaction; returns (hash, raw bytes), identical to eth_account's."""
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
    digest = keccak(_TYPE + _encode(fields))
    signature, recovery_id = recovery.sign(digest, secret, pubkey=_public_key(secret))
    r, s = signature[:32].lstrip(b"\0"), signature[32:].lstrip(b"\0")
    raw = _TYPE + _encode([*fields, _big_endian(recovery_id), r, s])
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


# The same address on every chain that has it.
MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11"
_AGGREGATE3 = selector("aggregate3((address,bool,bytes)[])")
# Bytes of a call's address, flag and calldata offset.
_HEAD = 3 * 32


def aggregate3(calls: Sequence[tuple[str, bool, bytes]]) -> bytes:
    """Encode calls, given as (contract, whether it may fail, calldata)."""
    parts = [
        word(to) + word(int(may_fail)) + word(_HEAD) + encoded_bytes(data)
        for to, may_fail, data in calls
    ]
    offsets, offset = b"", 32 * len(parts)
    for part in parts:
        offsets += word(offset)
        offset += len(part)
    return _AGGREGATE3 + word(32) + word(len(parts)) + offsets + b"".join(parts)


def read_single_call(data: bytes) -> tuple[str, bytes] | None:
    """Return contract and calldata if `aggregate3` encodes exactly one call, else None.

    Only the canonical encoding is accepted.
    """
    head = len(_AGGREGATE3) + 3 * 32
    to, length = data[head + 12 : head + 32], data[head + _HEAD : head + _HEAD + 32]
    if len(length) < 32:  # noqa: PLR2004 - one ABI word
        return None
    contract, calldata = "0x" + to.hex(), data[head + _HEAD + 32 :][: uint(length)]
    encodings = (aggregate3([(contract, may_fail, calldata)]) for may_fail in (False, True))
    return (contract, calldata) if data in encodings else None


def read_successes(answer: bytes, count: int) -> list[bool]:
    """Return which of `count` calls succeeded, from the result of `aggregate3`.

    Raises `ValueError` for any other result: the contract is not Multicall3.
    """
    body = answer[32:]
    if uint(answer[:32]) != 32 or uint(body[:32]) != count:  # noqa: PLR2004 - one ABI word
        raise ValueError("not the answer of Multicall3 to these calls")
    results = body[32:]
    offsets = [uint(results[at : at + 32]) for at in range(0, 32 * count, 32)]
    flags = [uint(results[offset : offset + 32]) for offset in offsets]
    if not set(flags) <= {0, 1}:
        raise ValueError("not the answer of Multicall3 to these calls")
    return [flag == 1 for flag in flags]


def batch_data(calls: Sequence[Call]) -> bytes:
    """Encode a batch of calls, each of which may fail independently."""
    return aggregate3([(call.to, True, call.data) for call in calls])
