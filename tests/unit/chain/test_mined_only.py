"""A receipt counts once a canonical block has it: one type for that, made in one place."""

import ast
from pathlib import Path

import pytest

from gateway.chain.decode import read_receipt
from gateway.domain import Block
from gateway_testing.facts import tx_hash

ROOT = Path(__file__).parents[3]
HASH, TX, ZERO = "0x" + "cd" * 32, tx_hash(1), "0x" + "0" * 64
RECEIPT = {"transactionHash": TX, "blockNumber": "0x7", "status": "0x1", "logs": []}
BLOCK = {"number": "0x7", "hash": HASH, "timestamp": "0x9"}


def test_a_receipt_of_a_canonical_block_carries_that_block():
    found = read_receipt(RECEIPT | {"blockHash": HASH.upper().replace("X", "x")}, BLOCK, TX)
    assert found.block == Block(number=7, hash=HASH, timestamp=9)


@pytest.mark.parametrize(
    ("block_hash", "block"),
    [(ZERO, None), (ZERO, BLOCK), ("0x" + "f1" * 32, None), ("0x" + "f1" * 32, BLOCK)],
)
def test_a_receipt_before_its_block_is_none(block_hash, block):
    assert read_receipt(RECEIPT | {"blockHash": block_hash}, block, TX) is None


def _sources(word: str) -> list[tuple[str, ast.AST]]:
    files = [path for folder in ("gateway", "plugins") for path in (ROOT / folder).rglob("*.py")]
    texts = [(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in files]
    return [(name, ast.parse(text)) for name, text in texts if word in text]


def test_nothing_else_makes_a_receipt_but_fakes_of_a_chain():
    made = {
        name
        for name, source in _sources("Receipt(")
        for node in ast.walk(source)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Receipt"
    }
    assert {name for name in made if not name.startswith("plugins/gateway_testing/")} == {
        "gateway/chain/decode.py"
    }


def test_the_gateway_reads_nothing_at_pending():
    """The embedded chain responds for it, as a node does."""
    named = {
        name
        for name, source in _sources("pending")
        for node in ast.walk(source)
        if isinstance(node, ast.Constant) and node.value == "pending"
    }
    assert {name for name in named if name.startswith(("gateway/chain/", "gateway/payments/"))} == (
        set()
    )
