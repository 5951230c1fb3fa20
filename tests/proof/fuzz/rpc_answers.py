"""Hypothesis strategies of false responses from a JSON-RPC endpoint."""

from hypothesis import strategies as st

from gateway.domain.eip3009 import AUTHORIZATION_USED_TOPIC, BASE, TRANSFER_TOPIC, topic
from tests.conftest import WALLET
from tests.proof.fuzz.hostile import dumped, mostly, mutated, spoiled, values

HASH = "0x" + "ab" * 32
PAYER = "0x" + "11" * 20
NONCE = "0x" + "22" * 32


BLOCK_HASH = "0x" + "cd" * 32


def _log(index: int, topics: list[str], data: str) -> dict:
    return {
        "address": BASE.token,
        "topics": topics,
        "data": data,
        "blockNumber": "0x5",
        "transactionHash": HASH,
        "transactionIndex": "0x0",
        "blockHash": BLOCK_HASH,
        "logIndex": hex(index),
        "removed": False,
    }


USED = _log(0, [AUTHORIZATION_USED_TOPIC, topic(PAYER), NONCE], "0x")
PAID = _log(1, [TRANSFER_TOPIC, topic(PAYER), topic(WALLET)], "0x" + (20_000).to_bytes(32).hex())
RECEIPT = {
    "transactionHash": HASH,
    "blockHash": BLOCK_HASH,
    "blockNumber": "0x5",
    # Of its own block: a reader that gets this response twice finds the block in it.
    "number": "0x5",
    "hash": BLOCK_HASH,
    "timestamp": "0x65000000",
    "status": "0x1",
    "from": PAYER,
    "to": BASE.token,
    "gasUsed": "0x5208",
    "type": "0x2",
    "logs": [USED, PAID],
}
BLOCK = {
    "number": "0x5",
    "hash": BLOCK_HASH,
    "timestamp": "0x65000000",
    "baseFeePerGas": "0x5f5e100",
    "transactions": [],
}
HEX = st.integers(-2, 2**260).map(hex) | st.binary(max_size=40).map(lambda raw: "0x" + raw.hex())
odd = values | HEX
receipts = mutated(RECEIPT, odd)
# Only from a lying endpoint: well-formed, but larger than any column or float.
receipts = st.one_of(receipts, mutated(RECEIPT, HEX))
results = st.one_of(
    receipts,
    mutated(BLOCK, odd),
    mutated([USED, PAID], odd),
    odd,
    st.just("0x" + "0" * 64),
)
_ERROR = {"code": -32000, "message": "execution reverted", "data": "0x"}


@st.composite
def answers(draw, of=results):
    """Draw the bytes of a JSON-RPC response around a result, an error, or neither."""
    envelope = {"jsonrpc": "2.0", "id": 0}
    kind = draw(st.sampled_from(["result"] * 7 + ["error", "none", "both", "odd", "bytes"]))
    if kind == "bytes":
        return draw(st.binary(max_size=40) | st.just(b"<html>502 Bad Gateway</html>"))
    if kind in ("result", "both"):
        envelope["result"] = draw(of)
    if kind in ("error", "both"):
        envelope["error"] = draw(mutated(_ERROR) | values)
    if kind == "odd":
        return dumped(draw(values))
    return draw(mostly(st.just(dumped(envelope)), spoiled(st.just(envelope))))
