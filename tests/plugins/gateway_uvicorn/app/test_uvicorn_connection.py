"""uvicorn's connections on uvloop: slow or missing readers, and disconnects."""

import asyncio
import contextlib
import logging
import queue
import re
import socket
import threading
import time

import pytest
import uvloop

from gateway.web.front.answers import Answer, send_answer
from gateway.web.server import serve as listening
from gateway.web.server.serve import listen
from gateway_uvicorn import protocol as uvicorn_protocol
from gateway_uvicorn import server as uvicorn_server

ASK = b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n"
ASK_LAST = ASK[:-2] + b"Connection: close\r\n\r\n"
LONG = b"x" * 4_000_000
KERNEL_BYTES = 64 * 1024
# On a busy machine a client may pause for a second.
IDLE_S = 3


class App:
    """Responds by uvicorn's own means, or in one piece by our extension."""

    def __init__(self) -> None:
        # Gets the end of a connection, or of a request whose response waits for the client's end.
        self.ended: queue.Queue[str] = queue.Queue()

    async def __call__(self, scope, receive, send) -> None:
        if scope["path"] == "/endless":
            while (await receive())["type"] != "http.disconnect":
                pass
            self.ended.put("request")
            return
        if scope["path"] == "/parts":
            scope = {**scope, "extensions": {}}
        # uvicorn continues reading once an app has received its request. The client may disconnect
        # then.
        await receive()
        await asyncio.sleep(0.02)
        body = LONG if scope["path"] == "/long" else b"ok"
        await send_answer(Answer(200, body, {}), [], (), scope, send, 60)


def serve(app: App, ready: queue.Queue) -> None:
    """Serve on a loop like the gateway's; `ready` gets the port and a stop function."""

    async def serve_until_stopped() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        with listen("127.0.0.1:0") as listener:
            # Connections inherit it, so the server notices soon that a client reads.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BYTES)
            ready.put((listener.getsockname()[1], lambda: loop.call_soon_threadsafe(stop.set)))
            await uvicorn_server.serve_started(app, listener, stop)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve_until_stopped())


@pytest.fixture
def app(monkeypatch):
    """An app whose server waits only briefly for a client."""
    app = App()

    class Told(uvicorn_protocol.GuardedProtocol):
        def connection_lost(self, exc):
            super().connection_lost(exc)
            app.ended.put("connection")

    for module in (uvicorn_protocol, listening):
        monkeypatch.setattr(module, "IDLE_S", IDLE_S)
    monkeypatch.setattr(uvicorn_protocol, "HALF_CLOSED_S", IDLE_S / 6)
    monkeypatch.setattr(uvicorn_server, "KEEP_ALIVE_S", IDLE_S)
    monkeypatch.setattr(uvicorn_server, "GuardedProtocol", Told)
    return app


@pytest.fixture
def connect(app):
    """Serve the app; returns a function that opens a connection."""
    ready: queue.Queue = queue.Queue()
    server = threading.Thread(target=serve, args=[app, ready])
    server.start()
    port, stop = ready.get(timeout=60)

    def connect() -> socket.socket:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BYTES)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", port))
        return connection

    yield connect
    stop()
    server.join(60)


def read(connection, size=float("inf"), pause_s=0) -> bytes:
    """Return the received bytes, in pieces with pauses, up to `size` or until the server closes."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while len(answer) < size and (piece := connection.recv(KERNEL_BYTES)):
            answer += piece
            time.sleep(pause_s)
    return answer


@pytest.mark.parametrize("ask", [ASK, ASK_LAST], ids=["kept", "closing"])
def test_a_client_that_reads_slowly_gets_its_whole_answer(connect, ask):
    with connect() as connection:
        connection.sendall(ask % b"long")
        # At least three times the timeout for a client that reads nothing.
        answer = read(connection, pause_s=3 * IDLE_S / (len(LONG) / KERNEL_BYTES))
    assert answer.endswith(b"\r\n\r\n" + LONG)


@pytest.mark.parametrize("ask", [ASK, ASK_LAST], ids=["kept", "closing"])
@pytest.mark.parametrize("size", [1, len(LONG) // 2], ids=["at once", "halfway"])
def test_a_client_that_stops_reading_is_cut_off(connect, app, ask, size):
    with connect() as connection:
        connection.sendall(ask % b"long")
        begun = read(connection, size)
        assert app.ended.get(timeout=60) == "connection"
        # From the operating system's buffers.
        assert len(begun + read(connection)) < len(LONG)


@pytest.mark.parametrize("more", [b"", ASK % b"long"], ids=["one", "two"])
def test_a_half_closed_client_may_read_for_as_long_as_it_takes(connect, more):
    with connect() as connection:
        connection.sendall(ASK % b"long" + more)
        connection.shutdown(socket.SHUT_WR)
        answers = read(connection, pause_s=IDLE_S / (len(LONG) / KERNEL_BYTES))
    assert answers.count(b"HTTP/1.1 200") == answers.count(b"\r\n\r\n" + LONG) == 1 + bool(more)


def test_a_half_closed_client_whose_answer_never_begins_is_given_up(connect, app):
    with connect() as connection:
        connection.sendall(ASK % b"endless")
        connection.shutdown(socket.SHUT_WR)
        assert {app.ended.get(timeout=60) for _ in range(2)} == {"connection", "request"}


@pytest.mark.parametrize("path", [b"whole", b"parts"])
@pytest.mark.parametrize("asks", [[ASK], [ASK] * 2, [ASK] * 5, [ASK, ASK_LAST]], ids=len)
@pytest.mark.parametrize("is_half_open", [True, False], ids=["half open", "closed"])
def test_a_client_that_hangs_up_is_no_line_in_the_log(connect, caplog, path, asks, is_half_open):
    for _ in range(20):
        with connect() as connection:
            connection.sendall(b"".join(ask % path for ask in asks))
            if is_half_open:
                connection.shutdown(socket.SHUT_WR)
                read(connection)
    with connect() as connection:
        connection.sendall(ASK_LAST % path)
        assert read(connection).endswith(b"ok")
    assert [line for line in caplog.records if line.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("more", [b"", ASK % b"whole", (ASK % b"whole") * 5], ids=[0, 1, 5])
def test_an_app_hears_of_a_hang_up_also_where_further_requests_wait(connect, app, more):
    with connect() as connection:
        connection.sendall(ASK % b"endless" + more)
    assert {app.ended.get(timeout=60) for _ in range(2)} == {"connection", "request"}


def test_few_long_requests_wait_behind_an_answer_that_is_not_read(connect):
    padded = ASK[:-2] + b"A: " + b"x" * 30_000 + b"\r\n\r\n"
    with connect() as connection:
        connection.sendall(ASK % b"long")
        begun = read(connection, 1)
        connection.sendall(padded % b"whole" * 8)
        answers = begun + read(connection)
    # One was being answered, 60,000 bytes of two more waited, and the next one was refused.
    assert re.findall(rb"HTTP/1.1 (\d+) ", answers) == [b"200"] * 4


def test_a_request_with_a_broken_body_gets_one_answer_however_late_it_is_read(connect):
    broken = b"POST /%b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n"
    for path in (b"whole", b"parts"):
        with connect() as connection:
            connection.sendall(ASK % b"long")
            begun = read(connection, 1)
            connection.sendall(broken % path)
            answers = begun + read(connection)
        assert re.findall(rb"HTTP/1.1 (\d+) ", answers) == [b"200", b"400"]
