"""Strict parsing of JSON-RPC parameters. Each function raises `RpcFault` for a wrong one."""

from __future__ import annotations

import re
from typing import Any, Final

from eth.constants import CREATE_CONTRACT_ADDRESS
from eth_typing import Address

from gateway_demo.chain.calls import Call
from gateway_demo.chain.evm import GAS_LIMIT
from gateway_demo.chain.faults import INVALID_PARAMS, RpcFault
from gateway_demo.chain.node import BlockHash, BlockRef

_QUANTITY: Final = re.compile(r"0x[0-9a-fA-F]{1,64}")
_DATA: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
_TAGS: Final = frozenset({"latest", "earliest", "pending", "safe", "finalized"})
ADDRESS_BYTES: Final = 20
HASH_BYTES: Final = 32


def _make_fault(why: str) -> RpcFault:
    return RpcFault(f"invalid argument: {why}", code=INVALID_PARAMS)


def quantity(value: Any) -> int:
    """Read a number such as "0x1f"."""
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise _make_fault(f"{value!r} is not a hex quantity")
    return int(value, 16)


def data(value: Any) -> bytes:
    """Read bytes such as "0x00ff"."""
    if not isinstance(value, str) or not _DATA.fullmatch(value):
        raise _make_fault(f"{value!r} is not hex data")
    return bytes.fromhex(value[2:])


def fixed(value: Any, size: int) -> bytes:
    """Read `size` bytes."""
    read = data(value)
    if len(read) != size:
        raise _make_fault(f"hex data has {len(read)} bytes, want {size}")
    return read


def address(value: Any) -> Address:
    """Parse an address. As in geth, its checksum is not verified."""
    return Address(fixed(value, ADDRESS_BYTES))


def block_ref(value: Any) -> BlockRef:
    """Parse a tag, a number, or EIP-1898's object."""
    if isinstance(value, dict):
        if "blockHash" in value:
            canonical = value.get("requireCanonical", False) is True
            return BlockHash(value=fixed(value["blockHash"], HASH_BYTES), canonical=canonical)
        return block_ref(value.get("blockNumber"))
    if isinstance(value, str) and value in _TAGS:
        return value
    if isinstance(value, str) and len(value) == 2 + 2 * HASH_BYTES:
        # geth accepts a bare hash as well.
        return BlockHash(value=fixed(value, HASH_BYTES))
    return quantity(value)


def message(value: Any) -> Call:
    """Parse the transaction object of `eth_call`; `gasPrice` is ignored."""
    if not isinstance(value, dict):
        raise _make_fault("a transaction object is wanted")
    payload = value.get("input") if value.get("input") is not None else value.get("data")
    gas = value.get("gas")
    return Call(
        sender=address(value.get("from") or "0x" + "00" * ADDRESS_BYTES),
        to=address(value["to"]) if value.get("to") else CREATE_CONTRACT_ADDRESS,
        data=data(payload if payload is not None else "0x"),
        value_wei=quantity(value.get("value") or "0x0"),
        gas=GAS_LIMIT if gas is None else min(quantity(gas), GAS_LIMIT),
        max_fee_wei=quantity(value.get("maxFeePerGas") or "0x0"),
        max_priority_wei=quantity(value.get("maxPriorityFeePerGas") or "0x0"),
    )
