"""The chain's time is wall time, whatever is mined."""

from __future__ import annotations

import time

from gateway_demo.chain import FAUCET_KEY


def test_time_passes_without_transactions(chain, web3):
    chain.advance(0)
    number = web3.eth.block_number
    chain.node._offset_s += 3
    latest = web3.eth.get_block("latest")
    assert latest["number"] == number + 1
    assert abs(latest["timestamp"] - time.time() - 3) < 2


def test_what_the_faucet_sends_is_mined_at_wall_time(chain, wallet):
    for _ in range(5):
        chain.send_transaction(FAUCET_KEY, wallet, value_wei=1)
    assert abs(chain.block.timestamp - chain.node.now_s) <= 1


def test_the_clock_stands_still_for_the_latest_block_while_nothing_is_mined(chain, web3):
    chain.set_automine(False)
    chain.node._offset_s += 60
    before = web3.eth.get_block("latest")
    assert web3.eth.get_block("latest")["number"] == before["number"]
    assert chain.mine().timestamp >= before["timestamp"] + 60
