"""Parses JSON-RPC responses into domain types.

A malformed response raises `KeyError`, `TypeError`, `ValueError`, `AttributeError` or `IndexError`,
which `endpoints` treats as no response.
"""

import re
from typing import Any

from gateway.domain import Block, Log, MinedTransfer, Receipt
from gateway.domain.eip3009 import AUTHORIZATION_USED_TOPIC, uint

_WORD = re.compile(r"0x[0-9a-fA-F]{64}")
# The limit of a database column; no block number or time comes near.
_MAX = 2**63


def read_bytes(value: str) -> bytes:
    """Decode a hex string."""
    return bytes.fromhex(value.removeprefix("0x"))


def read_count(value: str) -> int:
    """Decode a block number, time, gas or log index; `ValueError` if out of range."""
    count = int(value, 16)
    if not 0 <= count < _MAX:
        raise ValueError("a number out of range")
    return count


def read_word(value: str) -> str:
    """Return a hash or topic in lower case; `ValueError` for anything but 32 bytes."""
    if not _WORD.fullmatch(value):
        raise ValueError("not 32 bytes")
    return value.lower()


def read_block(raw: Any) -> Block:
    """Return a block, without its transactions."""
    return Block(
        number=read_count(raw["number"]),
        hash=read_word(raw["hash"]),
        timestamp=read_count(raw["timestamp"]),
        timestamp_ms=_read_milliseconds(raw),
    )


def _read_milliseconds(raw: Any) -> int | None:
    """Return the optional `timestampMs`, or None unless it fits the whole seconds."""
    try:
        count = read_count(raw["timestampMs"])
    except (KeyError, TypeError, ValueError):
        return None
    return count if count // 1000 == read_count(raw["timestamp"]) else None


def read_receipt(raw: Any, raw_block: Any, tx_hash: str) -> Receipt | None:
    """Return the receipt of a transaction in a canonical block; `KeyError` without a status.

    `raw_block` is the endpoint's block with the receipt's number. Returns None if that block
    is missing or has another hash: some nodes return receipts before a block contains the
    transaction, with a zero hash or one that no block will have.
    """
    if raw["transactionHash"].lower() != tx_hash:
        raise ValueError("the receipt of another transaction")
    if raw_block is None or read_word(raw["blockHash"]) != read_word(raw_block["hash"]):
        return None
    return Receipt(
        tx_hash=tx_hash,
        succeeded=int(raw["status"], 16) == 1,
        block=read_block(raw_block),
        logs=tuple(_read_log(log) for log in raw["logs"]),
        gas_used=None if raw.get("gasUsed") is None else read_count(raw["gasUsed"]),
        fee_wei=_read_fee(raw),
        l1_fee_wei=_read_l1_fee(raw),
    )


def _read_fee(raw: Any) -> int | None:
    if raw.get("gasUsed") is None or raw.get("effectiveGasPrice") is None:
        return None
    l2_fee = int(raw["gasUsed"], 16) * int(raw["effectiveGasPrice"], 16)
    return l2_fee + (_read_l1_fee(raw) or 0)


def _read_l1_fee(raw: Any) -> int | None:
    return None if raw.get("l1Fee") is None else int(raw["l1Fee"], 16)


def _read_log(raw: Any) -> Log:
    return Log(
        address=raw["address"].lower(),
        topics=tuple(read_word(part) for part in raw["topics"]),
        data=read_bytes(raw["data"]),
        index=read_count(raw["logIndex"]),
    )


def read_event(raw: Any) -> tuple[str, bool]:
    """Parse an authorization's log: (transaction hash, True if used or False if cancelled)."""
    is_use = read_word(raw["topics"][0]) == AUTHORIZATION_USED_TOPIC
    return read_word(raw["transactionHash"]), is_use


def read_transfer(raw: Any) -> MinedTransfer:
    """Parse a transfer from a log of `eth_getLogs`."""
    log = _read_log(raw)
    return MinedTransfer(
        tx_hash=read_word(raw["transactionHash"]),
        log_index=log.index,
        block_number=read_count(raw["blockNumber"]),
        sender="0x" + log.topics[1][-40:],
        recipient="0x" + log.topics[2][-40:],
        amount_units=uint(log.data),
    )
