"""The names of Hypercorn's that the gateway rests on; its documentation promises few of them.

A test that fails here says which name a new Hypercorn lacks: read what became of it, change
`gateway/web/hypercorn_*.py`, and run tests/proof/process on both servers.
"""

import ast
import inspect
import textwrap

import hypercorn.asyncio.run
import hypercorn.protocol
import pytest
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.protocol.events import Request
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.protocol.http_stream import HTTPStream

from gateway.web.server.hypercorn_connection import Connection
from gateway.web.server.hypercorn_protocol import Http1Protocol
from gateway.web.server.hypercorn_stream import Stream

# What a subclass of ours takes the place of.
REPLACED = [
    (TCPServer, Connection, {"_read_data", "_idle_timeout", "__init__", "protocol_send", "run"}),
    (
        H11Protocol,
        Http1Protocol,
        {
            "handle",
            "stream_send",
            "_send_h11_event",
            "_maybe_recycle",
            "_check_protocol",
            "_create_stream",
        },
    ),
    (HTTPStream, Stream, {"handle", "app_send"}),
]
# What our subclasses call or set of theirs, as it stands in their source.
USED = [
    (TCPServer, ["self.reader", "self.writer", "self.protocol", "self.idle_task.restart(",
                 "self.idle_task.stop(", "self._initiate_server_close",
                 "self.config.read_timeout", "async with self.send_lock:"]),
    (H11Protocol, ["self.keep_alive_requests += 1", "self.can_read.set(", "self.connection.send(",
                   "self.can_read.wait(", "self.connection.next_event(",
                   "self._close_stream()", "self._send_error_response(", "self.stream.handle(",
                   "await self.context.mark_request()"]),
    (TaskGroup, ["app_queue: asyncio.Queue[", "return app_queue.put"]),
    (HTTPStream, ["self.app_put = await self.task_group.spawn_app(", "self.app_put(",
                  "self.closed", "self.state = ASGIHTTPState.CLOSED",
                  "self.state == ASGIHTTPState.REQUEST", "self.scope", "self.send = send"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "ours", "names"), REPLACED, ids=lambda one: getattr(one, "__name__", "")
)
def test_hypercorn_still_calls_what_we_replace(theirs, ours, names):
    assert issubclass(ours, theirs)
    for name in names:
        assert name in vars(theirs), name
        assert name in vars(ours), name
        mine, its = (inspect.signature(vars(one)[name]) for one in (ours, theirs))
        assert name == "__init__" or len(mine.parameters) == len(its.parameters), name


@pytest.mark.parametrize(("theirs", "words"), USED, ids=lambda one: getattr(one, "__name__", ""))
def test_hypercorn_still_has_what_we_use(theirs, words):
    source = inspect.getsource(theirs)
    assert [word for word in words if word not in source] == []


def test_hypercorn_looks_its_classes_up_where_we_put_ours():
    assert hypercorn.asyncio.run.TCPServer in (TCPServer, Connection)
    assert "TCPServer(" in inspect.getsource(hypercorn.asyncio.run.worker_serve)
    assert hypercorn.protocol.H11Protocol in (H11Protocol, Http1Protocol)


@pytest.mark.parametrize("made", [HTTPStream, Request], ids=lambda one: one.__name__)
def test_hypercorn_makes_a_request_of_the_parts_that_we_make_it_of(made):
    def parts_in(method) -> list[str]:
        source = ast.parse(textwrap.dedent(inspect.getsource(method)))
        calls = [node for node in ast.walk(source) if isinstance(node, ast.Call)]
        names = {made.__name__, made.__name__.removeprefix("HTTP")}
        [call] = [call for call in calls if getattr(call.func, "id", "") in names]
        return [*map(ast.unparse, call.args), *(str(keyword.arg) for keyword in call.keywords)]

    assert parts_in(H11Protocol._create_stream) == parts_in(Http1Protocol._begin)
