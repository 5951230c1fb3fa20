"""Fixtures: the tests' own authority, and host names with addresses set by the test."""

import socket

import pytest

from gateway.outputs import links
from tests.gateway.vendors.certificates import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def names(monkeypatch):
    """The addresses of host names; those that look local count as public here."""
    table = {}

    usual = socket.getaddrinfo

    def getaddrinfo(host, port, *more, **named):
        # A test's server binds to an address of its own.
        if host not in table and str(host).startswith("127."):
            return usual(host, port, *more, **named)
        if host not in table:
            raise socket.gaierror(-2, "no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in table[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(links, "is_public", lambda address: address.startswith("127."))
    return table
