"""The address families for which a port is opened."""

import socket

import pytest

from gateway.errors import SettingsError
from gateway.web.server.serve import listen

HAS_IPV6 = socket.has_ipv6 and socket.has_dualstack_ipv6()
needs_ipv6 = pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")
FAMILIES = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}


def reached_at(bind: str) -> set[str]:
    """Return the loopback addresses at which a client reaches the listener."""
    found = set()
    with listen(bind) as listener:
        for host, family in FAMILIES.items():
            with socket.socket(family) as client:
                if client.connect_ex((host, listener.getsockname()[1])) == 0:
                    found.add(host)
    return found


@needs_ipv6
@pytest.mark.parametrize("host", ["[::]", "::", "[0:0:0:0:0:0:0:0]", "[::0]"])
def test_any_address_of_ipv6_takes_ipv4_as_well(host):
    assert reached_at(f"{host}:0") == {"127.0.0.1", "::1"}


@needs_ipv6
@pytest.mark.parametrize(
    ("bind", "reached"),
    [
        ("[::1]:0", {"::1"}),
        ("[::ffff:127.0.0.1]:0", {"127.0.0.1"}),
        ("127.0.0.1:0", {"127.0.0.1"}),
        ("0.0.0.0:0", {"127.0.0.1"}),
        ("localhost:0", {"127.0.0.1"}),
    ],
)
def test_any_other_address_takes_its_own_family(bind, reached):
    assert reached_at(bind) == reached


@needs_ipv6
def test_a_name_of_an_ipv6_address_alone_is_listened_on(monkeypatch):
    # As Fly's `fly-local-6pn` resolves.
    found = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert reached_at("fly-local-6pn:0") == {"::1"}


@pytest.mark.parametrize("bind", ["no-such-name.invalid:8080", "192.0.2.1:0"])
def test_an_address_that_is_not_here_is_refused_with_a_sentence(bind):
    with pytest.raises(SettingsError, match="cannot be opened"):
        listen(bind)


@needs_ipv6
def test_a_port_that_another_program_has_for_ipv4_is_in_use():
    with socket.create_server(("0.0.0.0", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match="is in use"):
            listen(f"[::]:{port}")
