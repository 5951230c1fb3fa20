"""Settings without a chain. Tests with a process or a server are in other folders."""

import socket
import subprocess

import pytest

from gateway import Settings
from tests.conftest import WALLET


@pytest.fixture(autouse=True)
def _no_process_and_no_server(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("A test that starts a process or a server is not for tests/unit.")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(subprocess.Popen, "__del__", lambda _: None)
    monkeypatch.setattr(socket.socket, "bind", refuse)


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(
        base_url="http://gateway.test",
        wallet=WALLET,
        rpc_urls=("http://127.0.0.1:9",),
        data_dir=tmp_path / "data",
        settlement_key="0x" + "1" * 64,
        min_free_disk_mb=0,
    )
