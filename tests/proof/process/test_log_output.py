"""A log that is not read, or cannot be written, blocks neither requests nor start nor shutdown."""

import contextlib
import fcntl
import json
import os
import threading
import urllib.request

import pytest

from tests.conftest import Payer, one_server
from tests.proof.process.gateway_process import PATIENCE_S, free_port, until

# Linux's smallest pipe: about 20 lines.
PIPE_BYTES = 4_096
# A queue of some 40 lines.
SMALL_QUEUE = (
    "import gateway.telemetry.log_queue as queue; queue.LogQueue.__init__.__defaults__ = (8_000,)\n"
)
REQUESTS = 200


@pytest.fixture
def pipe():
    """A pipe that a test reads on demand."""
    reading, writing = os.pipe()
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    with os.fdopen(reading, "rb") as reader:
        yield reader, writing
        with contextlib.suppress(OSError):
            os.close(writing)


def events_in(data: bytes) -> list[dict]:
    return [json.loads(line) for line in data.decode().splitlines()]


def ask(gateway, times: int) -> None:
    for _ in range(times):
        assert gateway.request("GET", "/api/health")[0] == 200


def stopped(gateway) -> int:
    gateway.stop()
    return gateway.process.wait(PATIENCE_S)


@pytest.mark.full
@one_server
def test_a_gateway_whose_log_nobody_reads_sells_and_stops(served, chain, pipe):
    reader, served.output = pipe
    served.start()
    served.let_go()
    ask(served, REQUESTS)
    task_id = served.bought(Payer(chain).header())
    assert served.task(task_id, wait_s=20)["status"] == "completed"
    assert stopped(served) == 0
    # The pipe's content is complete, up to its last line.
    os.close(served.output)
    assert events_in(reader.read().rpartition(b"\n")[0])[0]["event"] == "started"


@pytest.mark.full
@one_server
def test_a_log_that_moves_again_says_how_many_lines_are_missing(served, pipe):
    metrics = free_port()
    served.environment["GATEWAY_METRICS_BIND"] = f"127.0.0.1:{metrics}"
    served.patch(SMALL_QUEUE, before_imports=True)
    reader, served.output = pipe
    served.start()
    ask(served, REQUESTS)
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics") as page:
        numbers = dict(line.split(" ")[:2] for line in page.read().decode().splitlines())
    counted = float(numbers["gateway_log_lines_dropped_total"])
    assert 0 < counted < REQUESTS
    lines: list[bytes] = []
    reading = threading.Thread(target=lambda: lines.extend(iter(reader.readline, b"")))
    reading.start()
    until(lambda: b"log.dropped" in b"".join(lines[:]))
    served.stop()
    assert served.process.wait(PATIENCE_S) == 0
    os.close(served.output)
    reading.join()
    logged = events_in(b"".join(lines))
    requests = [line for line in logged if line["event"] == "request"]
    dropped = sum(line["lines"] for line in logged if line["event"] == "log.dropped")
    # Each request is in the log, or counted as dropped.
    assert len(requests) < REQUESTS <= len(requests) + dropped
    assert dropped >= counted
    assert logged[-1]["event"] == "stopped"


@pytest.fixture(params=["a full disk", "a closed pipe", "no descriptor"])
def unwritable(request, served):
    """A gateway whose standard output and error cannot be written."""
    if request.param == "no descriptor":
        served.is_forked = False
        served.command = ("sh", "-c", 'exec "$@" >&- 2>&-', "sh", *served.command)
        yield served
        return
    if request.param == "a full disk":
        served.output = os.open("/dev/full", os.O_WRONLY)
    else:
        reading, served.output = os.pipe()
        os.close(reading)
    yield served
    os.close(served.output)


@pytest.mark.full
@one_server
def test_an_unwritable_log_stops_neither_start_nor_sale_nor_stop(unwritable, chain):
    unwritable.start()
    unwritable.let_go()
    task_id = unwritable.bought(Payer(chain).header())
    assert unwritable.task(task_id, wait_s=20)["status"] == "completed"
    assert stopped(unwritable) == 0


@one_server
def test_a_start_that_fails_ends_although_nobody_reads_why(served, pipe):
    _, served.output = pipe
    os.set_blocking(served.output, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(served.output, b"x" * 64)
    os.set_blocking(served.output, True)
    served.environment["GATEWAY_WALLET"] = "0x0"
    served.process = served._run()
    assert served.process.wait(PATIENCE_S) == 1
