"""Fixtures: an authority of the tests' own, and names that lead where a test says."""

import asyncio
import socket

import pytest

from gateway.vendors import links
from tests.gateway.vendors.certificates import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def names(monkeypatch):
    """Which addresses a name has; those that look local count as public here."""
    table = {}

    async def getaddrinfo(self, host, port, **_):
        if host not in table:
            raise socket.gaierror(-2, "no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in table[host]]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(links, "is_public", lambda address: address.startswith("127."))
    return table
