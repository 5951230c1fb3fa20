"""Pending transactions: which are accepted, replaced, dropped, and mined in which order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway_demo.chain import FAUCET_KEY
from gateway_demo.chain.faults import RpcFault
from gateway_demo.token import address_of

GWEI = 10**9


def test_a_transaction_waits_until_a_block_is_mined(chain, web3, payer, wallet):
    chain.set_automine(False)
    tx_hash = chain.transfer_usdc(payer.key, wallet, 5)
    assert chain.receipt(tx_hash) is None
    assert web3.eth.get_transaction(tx_hash)["blockHash"] is None
    assert web3.eth.get_transaction_count(payer.address) == 0
    assert web3.eth.get_transaction_count(payer.address, "pending") == 1
    assert web3.eth.get_block("pending")["transactions"][0].to_0x_hex() == tx_hash
    chain.mine()
    assert chain.receipt(tx_hash)["status"] == "0x1"
    assert chain.usdc_balance(wallet) == 5


def test_turning_automatic_mining_on_mines_what_waits(chain, payer, wallet):
    chain.set_automine(False)
    tx_hash = chain.transfer_usdc(payer.key, wallet, 5)
    chain.set_automine(True)
    assert chain.receipt(tx_hash) is not None


def test_nonces_are_mined_in_order_and_gaps_wait(chain, payer, wallet):
    second = chain.send_transaction(payer.key, wallet, value_wei=2, nonce=1)
    assert chain.receipt(second) is None
    first = chain.send_transaction(payer.key, wallet, value_wei=1, nonce=0)
    indices = [chain.receipt(tx)["transactionIndex"] for tx in (first, second)]
    assert indices == ["0x0", "0x1"]


def test_a_replacement_needs_a_tenth_more(chain, payer, wallet):
    chain.set_automine(False)
    stuck = chain.send_transaction(payer.key, wallet, value_wei=1, nonce=0)
    with pytest.raises(RpcFault, match="replacement transaction underpriced"):
        chain.send_transaction(payer.key, wallet, value_wei=2, nonce=0)
    better = {"max_fee_wei": 2 * GWEI, "tip_wei": 2_000_000}
    winner = chain.send_transaction(payer.key, wallet, value_wei=2, nonce=0, **better)
    chain.mine()
    assert chain.receipt(stuck) is None
    assert chain.receipt(winner)["status"] == "0x1"


def test_the_same_bytes_are_already_known_and_then_too_low(chain, payer, wallet):
    chain.set_automine(False)
    raw = chain.sign_transaction(payer.key, wallet, value_wei=1)
    chain.send_raw(raw)
    with pytest.raises(RpcFault, match="already known"):
        chain.send_raw(raw)
    chain.mine()
    with pytest.raises(RpcFault, match="nonce too low: next nonce 1, tx nonce 0"):
        chain.send_raw(raw)


def test_a_dropped_transaction_is_gone_until_it_is_sent_again(chain, payer, wallet):
    chain.set_automine(False)
    raw = chain.sign_transaction(payer.key, wallet, value_wei=1)
    tx_hash = chain.send_raw(raw)
    assert chain.drop(tx_hash)
    assert not chain.drop(tx_hash)
    chain.mine()
    assert chain.receipt(tx_hash) is None
    assert chain.send_raw(raw) == tx_hash
    chain.mine()
    assert chain.receipt(tx_hash)["status"] == "0x1"


def test_a_transaction_that_offers_less_than_the_base_fee_waits(chain, payer, wallet):
    fees = {"max_fee_wei": 1_000_000, "tip_wei": 1}
    tx_hash = chain.send_transaction(payer.key, wallet, value_wei=1, nonce=0, **fees)
    chain.mine()
    assert chain.receipt(tx_hash) is None
    assert chain.node.pool.waiting


@pytest.mark.parametrize(
    ("fees", "reason"),
    [
        ({"value_wei": 2 * 10**18}, "insufficient funds for gas"),
        ({"gas": 20_000}, "intrinsic gas too low"),
        ({"gas": 10**8}, "exceeds block gas limit"),
        ({"tip_wei": 2 * GWEI}, "priority fee per gas higher"),
    ],
)
def test_what_can_never_be_mined_is_refused(chain, payer, wallet, fees, reason):
    with pytest.raises(RpcFault, match=reason):
        chain.send_transaction(payer.key, wallet, **fees)


def test_waiting_transactions_count_against_the_balance(chain, payer, wallet):
    chain.set_automine(False)
    chain.send_transaction(payer.key, wallet, value_wei=6 * 10**17)
    with pytest.raises(RpcFault, match="insufficient funds"):
        chain.send_transaction(payer.key, wallet, value_wei=6 * 10**17)


def test_funding_does_not_mine_what_waits(chain, payer, wallet):
    chain.set_automine(False)
    tx_hash = chain.transfer_usdc(payer.key, wallet, 5)
    chain.fund(wallet, usdc_units=3)
    assert chain.receipt(tx_hash) is None
    assert chain.usdc_balance(wallet) == 3


def test_a_reorganisation_mines_the_same_transaction_elsewhere(chain, payer, wallet):
    snapshot = chain.snapshot()
    raw = chain.sign_transaction(payer.key, wallet, value_wei=1)
    first = chain.receipt(chain.send_raw(raw))
    chain.revert(snapshot)
    chain.mine()
    second = chain.receipt(chain.send_raw(raw))
    assert first["transactionHash"] == second["transactionHash"]
    assert first["blockHash"] != second["blockHash"]


def test_many_senders_share_a_block(chain, payer, wallet):
    chain.set_automine(False)
    sent = [chain.send_transaction(key, wallet, value_wei=1) for key in (payer.key, FAUCET_KEY)]
    sent.append(chain.send_transaction(payer.key, wallet, value_wei=1))
    chain.mine()
    assert len({chain.receipt(tx)["blockHash"] for tx in sent}) == 1


def test_senders_in_many_threads_do_not_disturb_each_other(chain, wallet):
    payers = [bytes([number]) * 32 for number in range(1, 9)]

    def pay(key: bytes) -> list[str]:
        return [chain.transfer_usdc(key, wallet, 1) for _ in range(5)]

    for key in payers:
        chain.fund(address_of(key))
    with ThreadPoolExecutor(len(payers)) as threads:
        sent = [tx_hash for batch in threads.map(pay, payers) for tx_hash in batch]
    assert {chain.receipt(tx_hash)["status"] for tx_hash in sent} == {"0x1"}
    assert chain.usdc_balance(wallet) == 40
