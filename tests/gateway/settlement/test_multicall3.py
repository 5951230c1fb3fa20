"""Batches on Base's real Multicall3 code (MIT licence, see multicall3.json)."""

import json
from pathlib import Path

import attrs
import pytest
from eth_hash.auto import keccak
from eth_utils.address import to_canonical_address

from gateway.chain.decode import read_receipt
from gateway.chain.smart_wallets import DEPLOYMENT_GAS, KEY_GAS, WALLET_GAS, key_call
from gateway.chain.transactions import MULTICALL3, Call, batch_data, read_successes
from gateway.domain import Authorization
from gateway.domain.eip3009 import BASE
from gateway.errors import SettingsError
from gateway.payments.nonce_events import find_transfer
from gateway.settings.checks import check_settings
from gateway_demo.chain import FAUCET_KEY, PlayChain
from gateway_local_settler.batches import gas_of
from tests.conftest import WALLET, Payer

REAL = json.loads(Path(__file__).with_name("multicall3.json").read_text())
# EIP-7825: the maximum gas of one transaction.
MAX_GAS = 2**24
# Of a block of Base since 2026-11-05.
BLOCK_GAS = 40_000_000
UNITS = 20_000


class RealMulticall(PlayChain):
    """The embedded chain with the real contract, and with an account whose code never ends."""

    def __init__(self, looping: str | None = None) -> None:
        self._codes = {MULTICALL3: bytes.fromhex(REAL["runtime"][2:])}
        if looping is not None:
            # JUMPDEST, PUSH1 0, JUMP
            self._codes[looping] = bytes.fromhex("5b600056")
        super().__init__()

    def _write_genesis(self, state) -> None:
        super()._write_genesis(state)
        for address, code in self._codes.items():
            state.set_code(to_canonical_address(address), code)


@pytest.fixture
def chain():
    with RealMulticall() as running:
        yield running


def test_the_code_is_what_base_has():
    assert "0x" + keccak(bytes.fromhex(REAL["runtime"][2:])).hex() == REAL["codeHash"]
    assert REAL["address"] == MULTICALL3


def signed_by(chain, payer) -> Authorization:
    made = payer.authorization(UNITS)
    signature = made.sign(payer.account.key, chain.chain_id, chain.usdc)
    return Authorization(
        sender=payer.account.address.lower(),
        recipient=WALLET.lower(),
        value_units=UNITS,
        valid_after=made.valid_after,
        valid_before=made.valid_before,
        nonce="0x" + made.nonce.hex(),
        signature=signature,
    )


def calls_of(authorizations) -> list[Call]:
    return [key_call(signed, BASE) for signed in authorizations]


def simulate(chain, calls) -> list[bool]:
    return read_successes(chain.call(MULTICALL3, batch_data(calls)), len(calls))


def send(chain, calls, gas=None):
    """Send a batch as the settlement key does; returns (receipt, gas used)."""
    limit = gas or gas_of(len(calls))
    tx_hash = chain.send_transaction(FAUCET_KEY, MULTICALL3, batch_data(calls), gas=limit)
    answer = chain.receipt(tx_hash)
    block = chain.rpc.result("eth_getBlockByNumber", answer["blockNumber"], False)
    return read_receipt(answer, block, tx_hash), int(answer["gasUsed"], 16)


def paid_by(receipt, authorizations) -> list[bool]:
    found = [find_transfer(signed, receipt, BASE) for signed in authorizations]
    assert all(one is None or one.amount_units == UNITS for one in found)
    return [one is not None for one in found]


@pytest.mark.full
def test_a_hundred_payments_fit_into_one_transaction(chain):
    signed = [signed_by(chain, Payer(chain)) for _ in range(100)]
    calls = calls_of(signed)
    assert simulate(chain, calls) == [True] * 100
    receipt, used = send(chain, calls)
    assert paid_by(receipt, signed) == [True] * 100
    assert gas_of(100) <= MAX_GAS
    assert used < gas_of(100) / 2
    assert chain.usdc_balance(WALLET) == 100 * UNITS


def test_no_transaction_that_settings_allow_has_more_gas_than_base_accepts(settings):
    def is_allowed(count: int) -> bool:
        try:
            check_settings(attrs.evolve(settings, settlement_batch=count))
        except SettingsError:
            return False
        return True

    counts = [count for count in range(1, 300) if is_allowed(count)]
    assert counts == list(range(1, 101))
    limits = [KEY_GAS, WALLET_GAS, DEPLOYMENT_GAS, *map(gas_of, counts)]
    assert max(limits) <= MAX_GAS
    # Two batches fit into one block, so 64 waiting ones take 32 blocks: 6.4 s.
    assert 2 * max(limits) <= BLOCK_GAS


def test_one_bad_authorization_fails_alone_and_the_transaction_succeeds(chain):
    signed = [signed_by(chain, Payer(chain)) for _ in range(3)]
    poor = Payer(chain)
    signed.insert(1, signed_by(chain, poor))
    chain.transfer_usdc(
        poor.account.key, "0x" + "99" * 20, chain.usdc_balance(poor.account.address)
    )
    calls = calls_of(signed)
    assert simulate(chain, calls) == [True, False, True, True]
    receipt, _ = send(chain, calls)
    assert receipt.succeeded
    assert paid_by(receipt, signed) == [True, False, True, True]


def test_an_authorization_in_a_batch_twice_pays_once(chain):
    signed = signed_by(chain, Payer(chain))
    assert simulate(chain, calls_of([signed, signed])) == [True, False]
    send(chain, calls_of([signed, signed]))
    assert chain.usdc_balance(WALLET) == UNITS


def test_what_a_batch_has_no_gas_for_is_unpaid_whatever_its_status(chain):
    signed = [signed_by(chain, Payer(chain)) for _ in range(6)]
    receipt, _ = send(chain, calls_of(signed), gas=300_000)
    paid = paid_by(receipt, signed)
    assert not all(paid)
    assert chain.usdc_balance(WALLET) == sum(paid) * UNITS


def test_code_that_uses_up_the_gas_costs_one_batch_and_nobody_s_money(chain):
    """A plain account may get code after the simulation (EIP-7702), and that code may loop."""
    signed = [signed_by(chain, Payer(chain)) for _ in range(5)]
    with RealMulticall(looping=signed[2].sender) as other:
        for each in signed:
            other.fund(each.sender)
        receipt, used = send(other, calls_of(signed))
        paid = paid_by(receipt, signed)
        assert not paid[2]
        assert other.usdc_balance(WALLET) == sum(paid) * UNITS
    assert 2 * KEY_GAS < used <= gas_of(5)


def test_another_answer_than_multicall3_s_is_refused():
    for answer in (b"", b"\1", bytes(64), bytes(31) + b" " + bytes(31) + b"\2" + bytes(300)):
        with pytest.raises(ValueError, match=r"ABI|answer"):
            read_successes(answer, 3)
