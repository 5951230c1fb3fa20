"""Gas in a receipt: execution on L2, data on L1, or nothing."""

import pytest

from gateway.chain.decode import read_receipt
from gateway_testing.facts import tx_hash

GAS = {"gasUsed": hex(100_000), "effectiveGasPrice": hex(5_000_000)}


def receipt(**facts):
    raw = {
        "transactionHash": tx_hash(1),
        "blockHash": tx_hash(2),
        "blockNumber": "0x7",
        "status": "0x1",
        "logs": [],
    }
    block = {"hash": tx_hash(2), "number": "0x7", "timestamp": "0x9"}
    return read_receipt(raw | facts, block, tx_hash(1))


@pytest.mark.parametrize(
    ("facts", "fee", "gas", "l1_fee"),
    [
        (GAS | {"l1Fee": "0x64"}, 500_000_000_100, 500_000_000_000, 100),
        (GAS, 500_000_000_000, 500_000_000_000, None),
        (GAS | {"l1Fee": None}, 500_000_000_000, 500_000_000_000, None),
        ({"gasUsed": "0x5"}, None, None, None),
    ],
)
def test_gas_is_told_apart_by_where_it_was_paid(facts, fee, gas, l1_fee):
    found = receipt(**facts)
    assert found.fee_wei == fee
    assert (found.gas_wei, found.l1_fee_wei) == (gas, l1_fee)
    assert (found.block.number, found.succeeded, found.block.timestamp) == (7, True, 9)
