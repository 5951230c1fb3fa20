"""Log lines are written in order and whole, or counted as dropped."""

import json
import os
import sys
import threading

import pytest
import structlog

from gateway.telemetry import log_queue
from gateway.telemetry.log_queue import LogQueue, queued_output

LINE = b"x" * 99 + b"\n"


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "wb", buffering=0) as writer:
        yield reader, writer


def test_lines_of_output_and_errors_keep_their_order(pipe):
    reader, writer = pipe
    second = os.dup(writer.fileno())
    log = LogQueue()
    told = [b"%d\n" % number for number in range(200)]
    for number, line in enumerate(told):
        log.put(second if number % 3 else writer.fileno(), line)
    assert log.close()
    os.close(second)
    writer.close()
    assert reader.read() == b"".join(told)


def test_a_program_may_print_bytes_as_well(pipe, monkeypatch):
    reader, writer = pipe
    with os.fdopen(os.dup(writer.fileno()), "w") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        with queued_output():
            print("a text")  # noqa: T201 - as a plugin does
            sys.stdout.buffer.write("bytes, é\n".encode())
    writer.close()
    assert reader.read().decode() == "a text\nbytes, é\n"


def test_a_pipe_that_another_process_made_non_blocking_loses_nothing(pipe):
    reader, writer = pipe
    os.set_blocking(writer.fileno(), False)
    log = LogQueue(max_bytes=10**7)
    for _ in range(10_000):
        log.put(writer.fileno(), LINE)
    read = bytearray()
    reading = threading.Thread(target=lambda: read.extend(reader.read()))
    reading.start()
    assert log.close(60)
    writer.close()
    reading.join()
    assert read == LINE * 10_000


def test_lines_that_a_full_disk_did_not_take_are_counted_once_it_has_room(tmp_path, monkeypatch):
    full, log = os.open("/dev/full", os.O_WRONLY), LogQueue()
    for _ in range(7):
        log.put(full, LINE)
    written = threading.Event()
    monkeypatch.setattr(structlog, "get_logger", lambda: _Logger(log, full, written))
    with (tmp_path / "log").open("wb") as room:
        while log._dropped < 7:
            os.sched_yield()
        os.dup2(room.fileno(), full)
        log.put(full, LINE)
        assert written.wait(60)
    assert log.close()
    os.close(full)
    lines = (tmp_path / "log").read_text().splitlines()
    assert (lines[0], json.loads(lines[1])) == (
        LINE.decode().strip(),
        {"event": "log.dropped", "lines": 7},
    )


class _Logger:
    """Logs to the queue like the process's own loggers."""

    def __init__(self, log, descriptor, written) -> None:
        self._log, self._descriptor, self._written = log, descriptor, written

    def warning(self, event, **fields) -> None:
        self._log.put(self._descriptor, json.dumps({"event": event, **fields}).encode() + b"\n")
        self._written.set()


def test_what_nobody_reads_is_not_waited_for(pipe):
    reader, writer = pipe
    log = LogQueue(max_bytes=200_000)
    for _ in range(10_000):
        log.put(writer.fileno(), LINE)
    assert not log.close(0.01)
    reading = threading.Thread(target=reader.read)
    reading.start()
    assert log.close(60)
    writer.close()
    reading.join()


def test_many_lines_are_written_together_whatever_the_time(pipe, monkeypatch):
    reader, writer = pipe
    monkeypatch.setattr(log_queue, "_PAUSE_S", 3600.0)
    writes, write = [], LogQueue._write
    monkeypatch.setattr(
        LogQueue, "_write", lambda log, *what: (writes.append(what[1]), write(log, *what))
    )
    log = LogQueue()
    reading = threading.Thread(target=reader.read)
    reading.start()
    for _ in range(5000):
        log.put(writer.fileno(), LINE)
    # By its size, a batch is written long before its time.
    while not writes:
        os.sched_yield()
    assert log.close(60)
    writer.close()
    reading.join()
    assert sum(map(len, writes)) == 5000 * len(LINE)
    assert len(writes) < 50


def test_a_single_line_is_written_soon(pipe):
    reader, writer = pipe
    log = LogQueue()
    log.put(writer.fileno(), LINE)
    assert reader.read(len(LINE)) == LINE
    assert log.close()


def test_the_last_lines_before_an_exit_are_written_without_a_pause(pipe, monkeypatch):
    reader, writer = pipe
    monkeypatch.setattr(log_queue, "_PAUSE_S", 3600.0)
    log = LogQueue()
    for _ in range(3):
        log.put(writer.fileno(), LINE)
    assert log.close(60)
    writer.close()
    assert reader.read() == LINE * 3
