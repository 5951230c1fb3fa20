"""Blocks and transactions of the simulated chain, and the bytes of the gateway's transactions."""

import hashlib
import json

import attrs

from gateway.chain.transactions import MULTICALL3
from tests.proof.simulation.token import Call, State, read_batch

_NUMBERS = ("nonce", "maxFeePerGas", "maxPriorityFeePerGas")  # of a signed transaction


@attrs.frozen(eq=False)
class Transaction:
    """A sent transaction."""

    hash: str
    sender: str
    calls: tuple[Call, ...]
    nonce: int | None = None  # None: its sender sees to its order
    fee: int = 10**12
    is_atomic: bool = True  # False: Multicall3 that lets single calls fail
    is_sticky: bool = False  # its sender sends it until it is mined


@attrs.frozen(eq=False)
class MinedBlock:
    """A block and the state after it."""

    number: int
    hash: str
    timestamp: int
    state: State
    transactions: tuple[Transaction, ...] = ()


def hash_of_block(name: str, number: int) -> str:
    """Return a hash that ends with the block's number, so that the block can be found by it."""
    return f"0x{hashlib.sha256(name.encode()).hexdigest()[:48]}{number:016x}"


def number_of(block_hash: str) -> int:
    """Return the number in a block's hash."""
    return int(block_hash[-16:], 16)


def encode_raw(sender: str, transaction: dict[str, object]) -> bytes:
    """Return the bytes that the simulated key signs: readable and deterministic."""
    facts = {
        "sender": sender,
        "to": bytes(transaction["to"]).hex(),
        "data": bytes(transaction["data"]).hex(),
        **{name: transaction[name] for name in _NUMBERS},
    }
    return json.dumps(facts).encode()


def read_raw(raw: bytes) -> dict[str, object]:
    """Return the fields that `encode_raw` was given."""
    facts = json.loads(raw)
    fields = {name: facts[name] for name in _NUMBERS}
    return fields | {"to": bytes.fromhex(facts["to"]), "data": bytes.fromhex(facts["data"])}


def raw_hash(raw: bytes) -> str:
    return "0x" + hashlib.sha256(raw).hexdigest()


def decode_raw(raw: bytes) -> Transaction:
    facts = json.loads(raw)
    to, data = "0x" + facts["to"], bytes.fromhex(facts["data"])
    is_batch = to == MULTICALL3
    return Transaction(
        raw_hash(raw),
        facts["sender"],
        read_batch(data) if is_batch else (Call(facts["sender"], data, to),),
        nonce=facts["nonce"],
        fee=facts["maxFeePerGas"],
        is_atomic=not is_batch,
    )
