"""Wallets without an owner, and keys that are public, are refused on a real chain."""

import attrs
import pytest

from gateway.chain.keys import address_of, load_key, load_settlement_keys
from gateway.chain.known_keys import is_known_address, refuse_known_wallet
from gateway.errors import SettingsError
from gateway.settings import Settings

HARDHAT_7 = "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356"
LOCAL = ("http://127.0.0.1:8545",)
OWN = "0x" + "7cf1a6bd3fb7a9c1a5e2a3f9c2db2f3a4b5c6d7e"


@pytest.mark.parametrize(
    "wallet",
    [
        "0x" + "1" * 40,
        "0x" + "Ab" * 20,
        "0x" + "deadbeef" * 5,
        "0x000000000000000000000000000000000000dEaD",
        "0x0000000000000000000000000000000000000004",
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf",
    ],
)
def test_a_wallet_from_examples_is_refused_unless_the_chain_is_local(wallet):
    settings = Settings(wallet=wallet)
    with pytest.raises(SettingsError, match="Set the address of your own wallet"):
        refuse_known_wallet(settings)
    refuse_known_wallet(attrs.evolve(settings, rpc_urls=LOCAL))


def test_an_address_of_ones_own_is_taken():
    refuse_known_wallet(Settings(wallet=OWN))
    assert not is_known_address("0x" + "1234567890" * 3 + "abcdef0123")


@pytest.mark.parametrize("key", [HARDHAT_7, "0x" + "5e" * 32, f"{2:064x}", "0123456789abcdef" * 4])
def test_a_known_key_is_refused_for_settlements_and_refunds(key):
    settings = Settings(wallet=OWN, settlement_key=key, refund_key=key)
    for load in (load_settlement_keys, lambda settings: load_key(settings, "refund")):
        with pytest.raises(SettingsError, match="which everybody knows") as refusal:
            load(settings)
        assert key.removeprefix("0x") not in str(refusal.value)
        assert load(attrs.evolve(settings, rpc_urls=LOCAL))


def test_a_known_key_in_a_list_is_named_by_its_setting():
    settings = Settings(wallet=OWN, settlement_keys=f"{'1f' * 16}{'2c' * 16},{HARDHAT_7}")
    with pytest.raises(SettingsError, match="GATEWAY_SETTLEMENT_KEYS is a private key from"):
        load_settlement_keys(settings)


def test_the_address_of_each_default_account_is_known():
    assert is_known_address(address_of(bytes.fromhex(HARDHAT_7[2:])))
