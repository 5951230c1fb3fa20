"""JSON-RPC's answers as the domain's nouns; anything malformed raises, and counts as no answer."""

from typing import Any

from gateway.domain import Block, Log, MinedTransfer, Receipt
from gateway.usdc import uint


def read_bytes(value: str) -> bytes:
    """Return the bytes of a hex string."""
    return bytes.fromhex(value.removeprefix("0x"))


def read_block(raw: Any) -> Block:
    """Return a block's head."""
    return Block(
        number=int(raw["number"], 16), hash=raw["hash"].lower(), timestamp=int(raw["timestamp"], 16)
    )


def read_receipt(raw: Any, tx_hash: str) -> Receipt | None:
    """Return a receipt, None while missing or pending; `KeyError` for one without status."""
    if raw is None or raw["blockHash"] is None:
        return None
    if raw["transactionHash"].lower() != tx_hash:
        raise ValueError("the receipt of another transaction")
    return Receipt(
        tx_hash=tx_hash,
        succeeded=int(raw["status"], 16) == 1,
        block_number=int(raw["blockNumber"], 16),
        block_hash=raw["blockHash"].lower(),
        logs=tuple(_log(log) for log in raw["logs"]),
    )


def _log(raw: Any) -> Log:
    return Log(
        address=raw["address"].lower(),
        topics=tuple(part.lower() for part in raw["topics"]),
        data=read_bytes(raw["data"]),
        index=int(raw["logIndex"], 16),
    )


def read_transfer(raw: Any) -> MinedTransfer:
    """Return the transfer in an entry of `eth_getLogs`."""
    log = _log(raw)
    return MinedTransfer(
        tx_hash=raw["transactionHash"].lower(),
        log_index=log.index,
        block_number=int(raw["blockNumber"], 16),
        sender="0x" + log.topics[1][-40:],
        amount_units=uint(log.data),
    )
