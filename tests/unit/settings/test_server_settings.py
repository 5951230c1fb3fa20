"""GATEWAY_SERVER: Hypercorn, or the server of a plugin."""

import pytest

from gateway.errors import SettingsError
from gateway.settings import load_settings

WALLET = "0x" + "b2" * 20


@pytest.fixture(autouse=True)
def wallet(monkeypatch):
    monkeypatch.setenv("GATEWAY_WALLET", WALLET)


def test_hypercorn_is_the_default():
    assert load_settings().server == "hypercorn"


@pytest.mark.parametrize("value", ["gunicorn", "Uvicorn", ""])
def test_another_server_is_refused(monkeypatch, value):
    monkeypatch.setenv("GATEWAY_SERVER", value)
    with pytest.raises(SettingsError) as refusal:
        load_settings()
    assert str(refusal.value).startswith("GATEWAY_SERVER is not ")
    assert "`hypercorn`, or `uvicorn`" in str(refusal.value)
