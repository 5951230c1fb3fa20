"""The chain's time is wall time, whatever is mined."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from gateway_demo.chain import FAUCET_KEY, PlayChain

_START_S = 1_800_000_000


class _Clock:
    """A wall clock that a test moves."""

    now_s: float = _START_S

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock():
    return _Clock()


@pytest.fixture
def chain(clock):
    with PlayChain(clock=clock) as chain:
        yield chain


def _number(chain) -> int:
    return int(chain.rpc.result("eth_blockNumber"), 16)


def _block(chain, ref, full=False):
    return chain.rpc.result("eth_getBlockByNumber", hex(ref) if isinstance(ref, int) else ref, full)


def test_time_makes_five_blocks_a_second_that_share_its_timestamp(chain, clock):
    clock.now_s += 10.1
    assert _number(chain) == 50
    blocks = [_block(chain, number) for number in range(50)]
    seconds = Counter(int(block["timestamp"], 16) - _START_S for block in blocks)
    assert seconds == dict.fromkeys(range(10), 5)
    times_ms = [int(block["timestampMs"], 16) for block in blocks]
    assert times_ms == [1000 * _START_S + 200 * number for number in range(50)]


def test_each_empty_block_names_its_parent_and_is_found_by_its_hash(chain, clock, web3):
    clock.now_s += 5
    chain.send_transaction(FAUCET_KEY, chain.usdc)
    clock.now_s += 5
    blocks = [_block(chain, number) for number in range(_number(chain) + 1)]
    for before, block in itertools.pairwise(blocks):
        assert block["parentHash"] == before["hash"]
        assert chain.rpc.result("eth_getBlockByHash", block["hash"]) == block
    assert len({block["hash"] for block in blocks}) == len(blocks)
    assert web3.eth.get_block("latest")["hash"].to_0x_hex() == blocks[-1]["hash"]


def test_a_block_stays_what_it_was_after_a_transaction_and_more_time(chain, clock):
    clock.now_s += 1
    seen = [_block(chain, number) for number in range(_number(chain) + 1)]
    chain.send_transaction(FAUCET_KEY, chain.usdc)
    clock.now_s += 86_400
    assert [_block(chain, number) for number in range(len(seen))] == seen
    assert abs(_number(chain) - 5 * 86_401) <= 1


def test_idle_days_cost_nothing(chain, clock, wallet):
    chain.send_transaction(FAUCET_KEY, wallet, value_wei=1)
    clock.now_s += 30 * 86_400
    last = _number(chain)
    assert abs(last - 5 * 30 * 86_400) <= 1
    assert chain.rpc.result("eth_getBalance", wallet, hex(last - 1000)) == "0x1"
    assert len(chain.node._stored) <= 3


def test_a_transaction_is_in_the_block_that_comes_next(chain, clock, wallet):
    """No block that contains it is older than its sending, and none is further ahead."""
    for step in range(20):
        clock.now_s += step * 0.07
        chain.send_transaction(FAUCET_KEY, wallet, value_wei=1)
        ahead_ms = int(_block(chain, "latest")["timestampMs"], 16) - 1000 * clock.now_s
        assert 0 < ahead_ms <= 200


def test_the_state_of_an_empty_block_is_that_of_the_block_before(chain, clock, wallet):
    clock.now_s += 3
    before = _number(chain)
    chain.send_transaction(FAUCET_KEY, wallet, value_wei=7)
    mined = _number(chain)
    clock.now_s += 3
    after = {"blockHash": _block(chain, mined + 9)["hash"], "requireCanonical": True}
    assert chain.rpc.result("eth_getBalance", wallet, hex(before)) == "0x0"
    assert chain.rpc.result("eth_getBalance", wallet, hex(mined)) == "0x7"
    assert chain.rpc.result("eth_getBalance", wallet, after) == "0x7"


@pytest.mark.parametrize("pace_s", [2, 12])
def test_the_pace_can_be_slower_and_changes_while_the_chain_runs(chain, clock, pace_s):
    clock.now_s += 1
    assert _number(chain) == 5
    seen = [_block(chain, number)["hash"] for number in range(6)]
    chain.rpc.result("evm_setIntervalMining", pace_s * 1000)
    clock.now_s += 10 * pace_s + 0.35
    assert _number(chain) == 15
    assert "timestampMs" not in _block(chain, "latest")
    chain.set_pace(0.2)
    clock.now_s += 0.9
    # From the newest block on, which was 1.25 s old.
    assert _number(chain) == 15 + 6
    assert [_block(chain, number)["hash"] for number in range(6)] == seen
    times = [int(_block(chain, number)["timestamp"], 16) for number in range(20)]
    assert times == sorted(times)
    assert times[15] - times[5] == 10 * pace_s


def test_a_chain_can_be_slow_from_the_start(clock):
    with PlayChain(clock=clock, block_time_s=2) as chain:
        clock.now_s += 9
        assert _number(chain) == 4


def test_a_replaced_block_is_no_longer_canonical(chain, clock, wallet):
    clock.now_s += 1
    snapshot = chain.snapshot()
    chain.send_transaction(FAUCET_KEY, wallet, value_wei=1)
    lost = _block(chain, "latest")
    chain.revert(snapshot)
    clock.now_s += 1
    there = _block(chain, int(lost["number"], 16))
    assert there["hash"] != lost["hash"]
    assert there["transactions"] == []
    assert _number(chain) == 10


def test_logs_and_mined_transactions_have_the_time_in_milliseconds(chain, clock, wallet):
    clock.now_s += 1.5
    tx_hash = chain.mint(wallet, 5)
    expected = hex(1000 * _START_S + 1600)
    (log,) = chain.receipt(tx_hash)["logs"]
    assert log["blockTimestampMs"] == expected
    assert chain.rpc.result("eth_getTransactionByHash", tx_hash)["blockTimestampMs"] == expected
    assert "blockTimestampMs" not in chain.receipt(tx_hash)


def test_what_the_faucet_sends_is_mined_at_wall_time(chain, wallet):
    for _ in range(5):
        chain.send_transaction(FAUCET_KEY, wallet, value_wei=1)
    assert abs(chain.block.timestamp - chain.node.now_ms / 1000) <= 1


def test_the_clock_stands_still_for_the_latest_block_while_nothing_is_mined(chain, web3, clock):
    chain.set_automine(False)
    clock.now_s += 60
    before = web3.eth.get_block("latest")
    assert web3.eth.get_block("latest")["number"] == before["number"]
    assert chain.mine().timestamp >= before["timestamp"] + 60
