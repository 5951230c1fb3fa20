"""`--key`: a key comes from the keyring, a file, a keystore, a variable, never from the command."""

import json

import click
import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import NoKeyringError

from gateway.concurrency.late_imports import import_ethereum
from gateway_buyer.key import check_encrypted, check_source, read_key

KEY = "0x" + "1" * 64
SECRET = b"\x11" * 32


def read(source, password=None, *, is_local=False):
    return read_key(str(source), password, is_local=is_local)


@pytest.mark.parametrize("key", [KEY, KEY[2:], f" {KEY} "])
def test_a_key_in_the_command_is_refused_with_the_ways_to_give_one(key):
    with pytest.raises(click.UsageError, match=r"Do not write .* --key FILE .* env:NAME"):
        check_source(key)


@pytest.mark.parametrize("written", [KEY, KEY[2:] + "\n"])
def test_a_file_with_a_key(tmp_path, written):
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_text(written)
    assert read(file) == SECRET


def test_a_file_that_others_can_read_is_named(tmp_path, capsys):
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o644)
    assert read(file) == SECRET
    assert "can be read by other users: chmod 600" in capsys.readouterr().err


def test_a_variable(monkeypatch):
    monkeypatch.setenv("BUYER_KEY", KEY)
    assert read("env:BUYER_KEY") == SECRET


@pytest.mark.parametrize("value", ["", "0x12", "0" * 64, "f" * 64])
def test_a_variable_without_a_key(monkeypatch, value):
    monkeypatch.setenv("BUYER_KEY", value)
    with pytest.raises(click.UsageError, match="variable BUYER_KEY holds no private key") as raised:
        read("env:BUYER_KEY")
    assert not value or value not in str(raised.value)


@pytest.fixture(scope="module")
def keystore(tmp_path_factory):
    """A keystore with few rounds, so that it opens at once."""
    eth_keyfile = import_ethereum("eth_keyfile")
    content = eth_keyfile.create_keyfile_json(SECRET, b"open", kdf="pbkdf2", iterations=1)
    file = tmp_path_factory.mktemp("keys") / "key.json"
    file.write_text(json.dumps(content))
    return file


def test_a_keystore_opens_with_the_password_of_a_variable(monkeypatch, keystore):
    monkeypatch.setenv("PASSWORD", "open")
    assert read(keystore, "env:PASSWORD") == SECRET


def test_a_wrong_password_is_one_sentence(monkeypatch, keystore):
    monkeypatch.setenv("PASSWORD", "shut")
    with pytest.raises(click.UsageError, match="does not open with this password"):
        read(keystore, "env:PASSWORD")


@pytest.mark.parametrize("password", ["open", "env:MISSING"])
def test_a_password_in_the_command_is_refused(keystore, password):
    with pytest.raises(click.UsageError, match="--password is env:NAME") as raised:
        read(keystore, password)
    assert "open" not in str(raised.value)


def test_a_missing_password_names_its_option(keystore):
    with pytest.raises(click.UsageError, match="is missing: --password env:NAME names"):
        read(keystore)


@pytest.mark.parametrize("content", ["{", "{}", '{"crypto": 1}', "hello", ""])
def test_a_file_without_a_key_is_one_sentence(monkeypatch, tmp_path, content):
    monkeypatch.setenv("PASSWORD", "open")
    file = tmp_path / "key"
    file.write_text(content)
    with pytest.raises(click.UsageError, match=r"keystore nor|no private key|does not open"):
        read(file, "env:PASSWORD")


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(click.UsageError, match=r"cannot be read \(No such file"):
        read(tmp_path / "missing")


def test_without_a_terminal_nothing_is_asked():
    with pytest.raises(click.UsageError, match="private key is missing: --key FILE"):
        read_key(None, None, is_local=True)


def test_the_demos_key_is_for_this_machine_only():
    assert len(read("demo", is_local=True)) == 32
    with pytest.raises(click.UsageError, match="on this machine only"):
        read("demo")


# -- the system's keyring


class Ring(KeyringBackend):
    """A keyring in memory; without keys it is one that the system does not have."""

    priority = 1

    def __init__(self, keys=None):
        super().__init__()
        self.keys = keys

    def get_password(self, service, username):
        if self.keys is None:
            raise NoKeyringError
        return self.keys.get((service, username))

    def set_password(self, service, username, password):
        raise NotImplementedError


@pytest.fixture
def ring():
    """Returns a function that replaces the system's keyring."""
    before = keyring.get_keyring()
    yield lambda keys: keyring.set_keyring(Ring(keys))
    keyring.set_keyring(before)


def test_the_keyring_has_one_key_or_several(ring):
    other = "0x" + "2" * 64
    ring({("generation-gateway", "wallet"): KEY, ("generation-gateway", "spare"): other})
    assert read("keyring") == SECRET
    assert read("keyring:spare") == b"\x22" * 32


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({}, "Store it by `keyring set generation-gateway wallet`"),
        (None, "encrypt-key FILE` writes a keystore"),
        ({("generation-gateway", "wallet"): "hunter2"}, "The keyring holds no private key"),
    ],
    ids=["no key", "no keyring", "no private key"],
)
def test_a_keyring_without_a_key_is_one_sentence(ring, keys, sentence):
    ring(keys)
    with pytest.raises(click.UsageError, match=sentence) as raised:
        read("keyring")
    assert "hunter2" not in str(raised.value)


# -- a wallet for agents


@pytest.mark.parametrize("source", ["demo", "keyring", "keyring:spare", "missing.json"])
def test_an_agents_wallet_takes_keys_that_no_other_program_can_read(source):
    check_encrypted(source)


def test_an_agents_wallet_takes_a_keystore_but_no_plain_key(keystore, tmp_path):
    check_encrypted(str(keystore))
    plain = tmp_path / "key"
    plain.write_text(KEY)
    for source in (str(plain), "env:BUYER_KEY"):
        with pytest.raises(click.UsageError, match=r"keyring set .*`gateway encrypt-key") as raised:
            check_encrypted(source)
        assert KEY not in str(raised.value)
