"""Keys in encrypted files: written by the command, opened at the start, never shown."""

import json

import attrs
import pytest
from click.testing import CliRunner

from gateway.chain.keys import load_key
from gateway.cli import main
from gateway.errors import SettingsError
from tests.conftest import buy, running


@pytest.fixture
def keystore(tmp_path, gas_key):
    path = tmp_path / "key.json"
    result = CliRunner().invoke(
        main, ["encrypt-key", str(path), "--key", gas_key.key.hex(), "--password", "open sesame"]
    )
    assert result.exit_code == 0, result.output
    assert gas_key.address.lower() in result.output
    assert gas_key.key.hex() not in result.output
    return path


@pytest.fixture
def locked(settings, keystore):
    return attrs.evolve(
        settings,
        settlement_key=type(settings.settlement_key)(""),
        settlement_keystore=keystore,
        settlement_keystore_password=type(settings.settlement_key)("open sesame"),
    )


async def test_a_gateway_settles_with_a_key_from_a_keystore(locked, provider, payer, gas_key):
    async with running(locked, provider) as gateway:
        answer = await buy(gateway, payer.header())
        assert answer.status_code == 200
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["payment"]["state"] == "settled"
    assert gas_key.key.hex() not in repr(locked)
    assert "open sesame" not in repr(locked)


def test_only_its_owner_may_read_the_file(keystore):
    assert keystore.stat().st_mode & 0o777 == 0o600
    assert json.loads(keystore.read_text())["crypto"]["kdf"] == "pbkdf2"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"settlement_keystore_password": "wrong"}, "does not open"),
        ({"settlement_keystore": "missing.json"}, "no keystore that can be read"),
        ({"settlement_key": "1" * 64}, "both set"),
    ],
)
async def test_a_keystore_that_does_not_open_stops_the_start(locked, tmp_path, changes, words):
    if "settlement_keystore" in changes:
        changes = {"settlement_keystore": tmp_path / changes["settlement_keystore"]}
    with pytest.raises(SettingsError, match=words):
        async with running(attrs.evolve(locked, **changes)):
            pass


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"crypto": 5}', '{"version": 3}'])
def test_a_damaged_keystore_gets_one_sentence(locked, tmp_path, content):
    path = tmp_path / "damaged.json"
    path.write_text(content)
    with pytest.raises(SettingsError, match=r"keystore"):
        load_key(attrs.evolve(locked, settlement_keystore=path), "settlement")


def test_a_file_that_exists_is_not_overwritten(keystore):
    before = keystore.read_text()
    arguments = ["encrypt-key", str(keystore), "--key", "1" * 64, "--password", "x"]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, "already exists" in result.output) == (2, True)
    assert keystore.read_text() == before
