"""Settings that would lose money stop the start with a sentence: wallets, keys, a hash."""

import argon2
import pytest

from gateway.errors import SettingsError
from gateway.plugins.installed import find_sections
from gateway.settings import load_settings
from gateway_check.commands.check import run_checks
from gateway_operator.admin_password import hash_password
from gateway_operator.settings import operator_settings_of

CHECKSUMMED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # of EIP-55's own examples
PRODUCTION_HASHER = argon2.PasswordHasher  # read before tests/quick_starts.py replaces it
HASH = "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaA"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("WALLET", CHECKSUMMED.replace("E7Ef", "E7ef"), "EIP-55"),
        ("WALLET", CHECKSUMMED.replace("5aAeb6", "5aAeb7"), "EIP-55"),
        ("WALLET", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USDC contract on base,"),
        ("WALLET", "0x036cbd53842c5426634e7929541ec2318f3dcf7e", "USDC contract on base-sepolia"),
        ("ADMIN_PASSWORD_HASH", "correct horse", "argon2 hash"),
        ("ADMIN_PASSWORD_HASH", "$2b$12$" + "a" * 53, "argon2 hash"),
        ("ADMIN_PASSWORD_HASH", "=19=65536,t=3,p=4", "single quotes"),
        ("ADMIN_PASSWORD_HASH", HASH[:-1] + "=", "argon2 hash"),
        ("ADMIN_PASSWORD_HASH", HASH + "aaa", "argon2 hash"),
        ("FAILED_GAS_PER_HOUR", "nan", "reverted settlements"),
        ("HELD_FILES_MB", "7", "wait for x402 payments"),
    ],
    ids=[
        *("a case", "a digit", "Base's token", "Base Sepolia's token"),
        *("a password", "bcrypt", "a shell took its $", "padded", "cut off"),
        *("no number", "less than a file"),
    ],
)
def test_a_setting_that_loses_money_is_refused_when_it_is_read(monkeypatch, name, value, message):
    monkeypatch.setenv("GATEWAY_WALLET", CHECKSUMMED)
    monkeypatch.setenv(f"GATEWAY_{name}", value)
    with pytest.raises(SettingsError) as refusal:
        find_sections(load_settings())
    assert message in str(refusal.value)
    assert f"GATEWAY_{name}" in str(refusal.value)
    (row,) = run_checks()
    assert (row.name, row.ok, row.found) == ("settings", False, str(refusal.value))


@pytest.mark.parametrize(
    "wallet",
    [CHECKSUMMED, CHECKSUMMED.lower(), "0x" + CHECKSUMMED[2:].upper(), "0x" + "1" * 40],
    ids=["checksummed", "lower case", "upper case", "digits only"],
)
def test_a_right_checksum_or_none_is_taken(monkeypatch, wallet):
    monkeypatch.setenv("GATEWAY_WALLET", wallet)
    assert load_settings().wallet == wallet


def test_a_hash_that_we_make_is_taken(monkeypatch):
    monkeypatch.setenv("GATEWAY_WALLET", CHECKSUMMED)
    for hashed in (hash_password("correct horse"), HASH):
        monkeypatch.setenv("GATEWAY_ADMIN_PASSWORD_HASH", hashed)
        assert str(operator_settings_of(load_settings()).admin_password_hash) == hashed


def test_a_hash_that_we_make_costs_a_guesser_what_rfc_9106_advises(monkeypatch):
    monkeypatch.setattr(argon2, "PasswordHasher", PRODUCTION_HASHER)
    assert hash_password("correct horse").startswith("$argon2id$v=19$m=65536,t=3,p=4$")
