"""What several themes watch at the edge of the app."""

import pytest


@pytest.fixture
def rpc_calls(chain, monkeypatch) -> list[bytes]:
    """Return every call that reaches the chain's endpoint from now on."""
    calls: list[bytes] = []
    server = chain._server._http
    answer = server.answer

    def counted(body: bytes) -> bytes:
        calls.append(body)
        return answer(body)

    monkeypatch.setattr(server, "answer", counted)
    return calls
