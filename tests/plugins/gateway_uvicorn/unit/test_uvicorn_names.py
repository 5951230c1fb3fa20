"""The names of uvicorn that the gateway uses; few of them are documented.

A failing test names what a new uvicorn lacks: find its replacement, change
`plugins/gateway_uvicorn/protocol.py`, and run tests/proof/process on both servers.
"""

import ast
import asyncio
import inspect
import logging
import textwrap

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from gateway_uvicorn import protocol as uvicorn_protocol
from gateway_uvicorn import server as uvicorn_server
from gateway_uvicorn.protocol import GuardedProtocol
from tests.patience import PATIENCE_S

OURS = set(vars(GuardedProtocol))
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Wire(asyncio.Transport):
    """A connection that keeps everything written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.was_written = asyncio.Event()

    def write(self, data) -> None:
        self.written += data
        self.was_written.set()

    def set_write_buffer_limits(self, high=None, low=None) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass


async def app(scope, receive, send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


@pytest.fixture
async def connection():
    """uvicorn's own protocol after a request, on a connection in memory."""
    config = uvicorn_server.uvicorn_config(app)
    protocol = HttpToolsProtocol(config, ServerState(), {}, asyncio.get_running_loop())
    protocol.connection_made(Wire())
    protocol.data_received(REQUEST)
    yield protocol
    protocol.connection_lost(None)


def used_of(*owners: str) -> set[str]:
    """Return the attributes that our protocol reads or sets on these expressions."""
    parts = (GuardedProtocol, uvicorn_protocol.write_whole)
    trees = [ast.parse(inspect.getsource(part)) for part in parts]
    found = (node for tree in trees for node in ast.walk(tree))
    nodes = [node for node in found if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if ast.unparse(node.value) in owners}


def missing(thing, names) -> list[str]:
    return sorted(name for name in names if not hasattr(thing, name))


async def test_uvicorns_protocol_has_what_ours_overrides(connection):
    overridden = {name for name in used_of("super()") if name != "__init__"}
    assert overridden
    assert missing(connection, overridden | {"data_received"}) == []


async def test_uvicorns_protocol_has_what_ours_uses(connection):
    used = {name for name in used_of("self") - OURS if not name.startswith("_")}
    assert {"cycle", "parser", "pipeline", "transport"} <= used
    assert missing(connection, used) == []


async def test_its_parts_have_what_ours_uses(connection):
    used = used_of("self.cycle", "newest", "self._answered")
    assert {"keep_alive", "response_complete", "response_started"} <= used
    assert missing(connection.cycle, used | used_of("cycle")) == []
    assert missing(connection.flow, used_of("self.flow", "cycle.flow")) == []
    assert missing(connection.server_state, used_of("self.server_state")) == []


async def test_it_reports_a_request_to_the_methods_that_ours_overrides():
    called = []

    class Told(GuardedProtocol):
        def on_message_begin(self):
            called.append("begin")
            super().on_message_begin()

        def on_headers_complete(self):
            called.append("head")
            super().on_headers_complete()

        def on_message_complete(self):
            called.append("end")
            super().on_message_complete()

    config = uvicorn_server.uvicorn_config(app)
    protocol, wire = Told(config, ServerState(), {}, asyncio.get_running_loop()), Wire()
    protocol.connection_made(wire)
    protocol.data_received(REQUEST)
    assert called == ["begin", "head", "end"]
    async with asyncio.timeout(PATIENCE_S):
        await wire.was_written.wait()
    assert wire.written.startswith(b"HTTP/1.1 204 ")
    assert not protocol.is_closing
    # Ours keeps both up to date if no request waits, without uvicorn's timer.
    assert protocol.server_state.total_requests == 1
    assert protocol.timeout_keep_alive_task is None
    protocol.connection_lost(None)


def test_an_answers_end_does_no_more_than_ours_does():
    source = textwrap.dedent(inspect.getsource(HttpToolsProtocol.on_response_complete))
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    assert {ast.unparse(call.func) for call in calls} == {
        "self.transport.is_closing",
        "self._unset_keepalive_if_required",
        "self.flow.resume_reading",
        "self.pipeline.pop",
        "self._start_asgi_task",
        "self.loop.call_later",
    }


def test_its_server_leaves_signals_to_a_method_and_its_end_to_an_attribute():
    server = uvicorn.Server(uvicorn_server.uvicorn_config(app))
    assert inspect.isfunction(uvicorn.Server.capture_signals)
    assert server.should_exit is False
    assert "sockets" in inspect.signature(uvicorn.Server.serve).parameters


def test_it_starts_quietly_and_logs_errors():
    uvicorn_server.uvicorn_config(app)
    log = logging.getLogger("uvicorn.error")
    assert not log.isEnabledFor(logging.WARNING)
    assert log.isEnabledFor(logging.ERROR)
    assert not logging.getLogger("uvicorn.access").hasHandlers()
