"""Using the wallet's own key as a gateway's key stops the start with a message."""

import attrs
import pytest
from eth_account import Account

from gateway.app import create_app
from gateway.chain.keys import encrypt_key
from gateway.errors import SettingsError


def is_one_sentence(text: str) -> bool:
    return "\n" not in text and text.endswith(".")


@pytest.mark.parametrize("case", ["settlement", "refund", "unused settlement", "keystore"])
def test_a_key_of_the_wallet_stops_the_start(settings, tmp_path, case):
    wallet = Account.create()
    changes = {"settlement_key": wallet.key.hex()}
    if case == "refund":
        changes = {"refund_key": wallet.key.hex()}
    elif case == "unused settlement":
        changes |= {"settlement": "facilitator", "facilitator_url": "https://facilitator.test"}
    elif case == "keystore":
        (tmp_path / "key.json").write_text(encrypt_key(bytes(wallet.key), "secret"))
        changes = {"settlement_key": "", "settlement_keystore": tmp_path / "key.json"}
        changes |= {"settlement_keystore_password": "secret"}
    wrong = attrs.evolve(settings, wallet=wallet.address, **changes)
    with pytest.raises(SettingsError) as refusal:
        create_app(wrong)
    assert "is the private key of GATEWAY_WALLET" in str(refusal.value)
    assert wallet.key.hex().removeprefix("0x") not in str(refusal.value)
    assert is_one_sentence(str(refusal.value))
