"""`gateway encrypt-key`: an invalid key or a missing folder gets one sentence."""

import pytest
from click.testing import CliRunner

from gateway.cli import main

CURVE_ORDER = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
LAST_KEY = CURVE_ORDER[:-1] + "0"


def encrypt(path, key):
    return CliRunner().invoke(main, ["encrypt-key", str(path), "--key", key, "--password", "x"])


@pytest.mark.parametrize("key", ["0" * 64, CURVE_ORDER, "f" * 64, "1" * 63, "g" * 64, "0x", ""])
def test_what_is_no_private_key_is_not_written(tmp_path, key):
    result = encrypt(tmp_path / "key.json", key)
    assert (result.exit_code, "64 hexadecimal digits" in result.output) == (2, True)
    assert not list(tmp_path.iterdir())


def test_the_last_key_of_the_curve_is_written(tmp_path):
    assert encrypt(tmp_path / "key.json", LAST_KEY).exit_code == 0


def test_a_missing_folder_gets_one_sentence(tmp_path):
    result = encrypt(tmp_path / "missing" / "key.json", "1" * 64)
    assert (result.exit_code, "cannot be written" in result.output) == (2, True), result.output
    assert "Traceback" not in result.output
