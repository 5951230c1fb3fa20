"""Event streams through each server: only one that is not read is cut off."""

import contextlib
import json
import socket
import time

import pytest

from tests.proof.process.connections import bought, bought_big, is_held
from tests.proof.process.gateway_process import until


class Stream:
    """An open stream, read by hand."""

    def __init__(self, gateway, task_id, *, buffer_bytes=None) -> None:
        self.socket = socket.socket()
        if buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self.socket.settimeout(100)
        self.socket.connect(("127.0.0.1", gateway.port))
        about = "Host: a\r\nAccept: text/event-stream\r\n\r\n"
        self.socket.sendall(f"GET /api/task/{task_id} HTTP/1.1\r\n{about}".encode())
        self.received = b""

    def read_until(self, *words: bytes) -> bytes:
        """Return everything that has arrived once it has one of these words."""
        while not any(word in self.received for word in words):
            piece = self.socket.recv(65536)
            assert piece, self.received
            self.received += piece
        return self.received

    def status(self) -> bytes:
        return self.read_until(b"\r\n\r\n")[9:12]

    def rest(self) -> bytes:
        """Return everything that arrives until the server closes, or resets, the connection."""
        with contextlib.suppress(ConnectionError):
            while piece := self.socket.recv(1 << 20):
                self.received += piece
        return self.received

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def opened(impatient):
    streams = []

    def opened(task_id, **options):
        streams.append(Stream(impatient, task_id, **options))
        return streams[-1]

    yield opened
    for stream in streams:
        stream.close()


def bodies(received: bytes) -> list[dict]:
    found = [line for line in received.splitlines() if line.startswith(b"data: ")]
    return [json.loads(line[6:]) for line in found]


def test_a_stream_outlives_the_limits_of_idle_connections(impatient, opened):
    task_id = bought(impatient)
    stream = opened(task_id)
    assert stream.status() == b"200"
    stream.read_until(b"data: ")
    # Three times the limit.
    time.sleep(3)
    impatient.let_go()
    received = stream.read_until(b'"status":"completed"')
    # The last chunk: the response has ended properly.
    assert stream.read_until(b"\r\n0\r\n\r\n")
    assert bodies(received)[0]["done"] is False


def test_a_poll_may_wait_as_long_as_a_connection_may_be_idle(impatient):
    task_id = bought(impatient)
    for _ in range(5):
        assert impatient.task(task_id, wait_s=1)["done"] is False
    impatient.let_go()


def test_clients_that_hang_up_free_their_places_at_once(impatient, opened):
    task_id = bought(impatient)
    for _ in range(3):
        four = [opened(task_id) for _ in range(4)]
        for stream in four:
            assert stream.status() == b"200"
        assert opened(task_id).status() == b"429"
        for stream in four:
            stream.close()
        until(lambda: is_free(impatient, task_id))
    impatient.let_go()


def is_free(gateway, task_id) -> bool:
    stream = Stream(gateway, task_id)
    try:
        return stream.status() == b"200"
    finally:
        stream.close()


def test_a_client_that_does_not_read_is_cut_off(impatient, opened):
    task_id = bought_big(impatient)
    four = [opened(task_id, buffer_bytes=4096) for _ in range(4)]
    for stream in four:
        assert stream.status() == b"200"
    # Each poll costs the gateway the whole response.
    until(lambda: is_free(impatient, task_id), pause_s=0.5)
    for stream in four:
        until(lambda: not is_held(impatient, stream.socket))  # noqa: B023 - called at once
        assert len(stream.rest()) < 16_000_000
