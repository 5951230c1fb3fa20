"""`GATEWAY_LOG_FORMAT=auto`: lines for people on a terminal, JSON anywhere else."""

import json
import logging
import os
import sys

import pytest
import structlog

from gateway.telemetry.logs import configure_logs


@pytest.fixture
def restored():
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def printed(monkeypatch, read, write):
    with open(write, "w", closefd=False) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        configure_logs("auto")
        structlog.get_logger().warning("disk.low", free_mb=3)
        stream.flush()
    return os.read(read, 4096).decode()


@pytest.mark.parametrize(("opened", "is_json"), [(os.openpty, False), (os.pipe, True)])
def test_the_format_follows_the_reader(restored, monkeypatch, opened, is_json):
    read, write = opened()
    line = printed(monkeypatch, read, write)
    os.close(read)
    os.close(write)
    assert "disk.low" in line
    assert line.startswith("{") == is_json
    if is_json:
        assert json.loads(line)["free_mb"] == 3
