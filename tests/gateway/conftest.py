"""Fixtures that several folders use to watch, or break, the edge of the app."""

from collections.abc import Iterator

import pytest

from tests.proof.faults.proxy import FaultProxy


@pytest.fixture
def proxy(chain) -> Iterator[FaultProxy]:
    """Start an RPC endpoint in front of the chain that fails on demand."""
    with FaultProxy(chain) as proxy:
        yield proxy


@pytest.fixture
def rpc_calls(chain, monkeypatch) -> list[bytes]:
    """Return a list of every call that reaches the chain's endpoint from now on."""
    calls: list[bytes] = []
    server = chain._server._http
    answer = server.answer

    def counted(body: bytes) -> bytes:
        calls.append(body)
        return answer(body)

    monkeypatch.setattr(server, "answer", counted)
    return calls
