"""Our signed transactions equal those of eth_account, byte for byte."""

import random

import pytest
from eth_account import Account

from gateway.chain.transactions import (
    aggregate3,
    read_single_call,
    read_transaction,
    sign_transaction,
)

DICE = random.Random(1559)
# Around each length at which RLP changes its encoding.
LENGTHS = (0, 1, 2, 54, 55, 56, 57, 255, 256, 257, 65_535, 65_536)


def some_number(most_bits: int) -> int:
    """Return a number that may be short, since RLP encodes short numbers differently."""
    return DICE.getrandbits(DICE.randint(0, most_bits))


def some_transaction(data: bytes) -> dict:
    return {
        "chainId": DICE.choice([1, 127, 128, 8453, 84_532]),
        "nonce": some_number(40),
        "maxPriorityFeePerGas": some_number(60),
        "maxFeePerGas": some_number(70),
        "gas": some_number(30),
        "to": DICE.randbytes(20),
        "value": some_number(90),
        "data": data,
    }


def official(secret: bytes, transaction: dict) -> tuple[str, bytes]:
    signed = Account.sign_transaction(transaction, secret)
    return "0x" + bytes(signed.hash).hex(), bytes(signed.raw_transaction)


@pytest.mark.parametrize("length", LENGTHS)
def test_calldata_of_each_length_gives_the_official_bytes(length):
    for _ in range(5):
        secret, transaction = DICE.randbytes(32), some_transaction(DICE.randbytes(length))
        assert sign_transaction(secret, transaction) == official(secret, transaction)


def test_short_bytes_and_zeros_give_the_official_bytes():
    for data in (b"\0", b"\x7f", b"\x80", b"\0\0"):
        transaction = some_transaction(data) | {"nonce": 0, "value": 0, "maxPriorityFeePerGas": 0}
        secret = DICE.randbytes(32)
        assert sign_transaction(secret, transaction) == official(secret, transaction)


def test_signatures_with_leading_zeros_give_the_official_bytes():
    """About every 128th signature has an r or s that begins with a zero byte."""
    secret, short = DICE.randbytes(32), 0
    transaction = some_transaction(b"")
    for nonce in range(600):
        transaction["nonce"] = nonce
        tx_hash, raw = sign_transaction(secret, transaction)
        # The list ends with v, r and s: one byte, then twice 33, unless r or s is shorter.
        if raw[-33] != 0xA0 or raw[-66] != 0xA0:
            short += 1
            assert (tx_hash, raw) == official(secret, transaction)
    assert short


@pytest.mark.parametrize("length", LENGTHS)
def test_what_was_signed_is_read_again(length):
    transaction = some_transaction(DICE.randbytes(length)) | {"value": 0}
    _, raw = sign_transaction(DICE.randbytes(32), transaction)
    assert read_transaction(raw) == transaction


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 500])
@pytest.mark.parametrize("may_fail", [False, True])
def test_one_call_of_multicall_is_read_as_it_was_written(length, may_fail):
    to, data = "0x" + DICE.randbytes(20).hex(), DICE.randbytes(length)
    assert read_single_call(aggregate3([(to, may_fail, data)])) == (to, data)


def test_anything_else_than_one_call_is_not_read():
    call = ("0x" + "11" * 20, False, b"data")
    whole = aggregate3([call])
    others = [aggregate3([]), aggregate3([call, call]), whole + bytes(32), b"\1" + whole[1:], b""]
    others += [whole[:length] for length in range(len(whole))]
    others += [whole[:place] + b"\xff" * 32 + whole[place + 32 :] for place in range(4, 200, 32)]
    assert [data for data in others if read_single_call(data)] == []
