"""The log line of a plain request has the same form as all others, but is written in one step."""

import asyncio
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from gateway.telemetry import request_lines
from gateway.telemetry.logs import configure_logs
from gateway.telemetry.redaction import Redactor, hide_prompt
from gateway.telemetry.request_lines import log_request

SECRET = "4f2f9f5a8f1e4e3c9d00b1c2d3e4f506"
PLAIN = {"method": "POST", "rule": "/api/x402/<slug>", "status": 402, "ms": 0.4}


@pytest.fixture(autouse=True)
def _own_configuration(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # A logger keeps the configuration of its first use, and this one's stream ends with the test.
    monkeypatch.setattr(request_lines, "_log", structlog.get_logger())
    known, handlers, level = structlog.get_config(), logging.root.handlers[:], logging.root.level
    structlog.contextvars.clear_contextvars()
    yield
    hide_prompt(None)
    structlog.contextvars.clear_contextvars()
    structlog.configure(**known)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def written(capsys: pytest.CaptureFixture[str], **fields: Any) -> dict[str, Any]:
    """Log a request's end as the gateway does; returns its line's fields."""
    configure_logs("json", Redactor([SECRET]))
    structlog.contextvars.bind_contextvars(request=fields.get("request", "of-the-proxy"))
    if "note" in fields:
        structlog.get_logger().info("request", **fields)
    else:
        log_request(**{"request": None, **fields})
    (line,) = capsys.readouterr().out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_plain_line_has_the_fields_of_every_other_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun = datetime.now(UTC)
    plain = written(capsys, **PLAIN, request="a1b2")
    long_way = written(capsys, **PLAIN)
    assert (
        plain.items() >= {**PLAIN, "request": "a1b2", "level": "info", "event": "request"}.items()
    )
    assert plain.keys() == long_way.keys()
    assert list(plain) == list(long_way)
    assert begun <= datetime.fromisoformat(plain["timestamp"]) <= datetime.now(UTC)
    assert plain["timestamp"].endswith("Z")


@pytest.mark.parametrize("name", ["method", "rule"])
def test_what_a_client_chose_is_redacted(capsys: pytest.CaptureFixture[str], name: str) -> None:
    found = written(capsys, **{**PLAIN, "request": "a1b2", "method": "BREW", name: SECRET})
    assert SECRET not in found[name]


def test_an_id_of_the_proxys_is_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json", Redactor([SECRET]))
    structlog.contextvars.bind_contextvars(request=SECRET)
    structlog.get_logger().info("request", **PLAIN)
    assert SECRET not in capsys.readouterr().out


@pytest.mark.parametrize("fields", [{"rule": None}, {"method": "PROPFIND"}, {"note": "more"}])
def test_an_unusual_request_loses_nothing(
    capsys: pytest.CaptureFixture[str], fields: dict[str, Any]
) -> None:
    found = written(capsys, **{**PLAIN, "request": "a1b2", **fields})
    assert found.items() >= {**PLAIN, "request": "a1b2", **fields}.items()


def test_other_events_with_the_same_fields_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    structlog.get_logger().info("rpc.failed", **PLAIN, request="a1b2")
    assert json.loads(capsys.readouterr().out)["event"] == "rpc.failed"


async def test_lines_of_one_turn_are_written_once_and_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json")
    for name in ("a1", "a2"):
        log_request("GET", "/api/health", 200, 0.1, name)
    structlog.get_logger().info("rpc.failed")
    log_request("GET", "/api/health", 200, 0.1, "a3")
    log_request("GET", None, 404, 0.1, "a4")
    log_request("GET", "/api/health", 200, 0.1, "a5")
    await asyncio.sleep(0)
    log_request("GET", "/api/health", 200, 0.1, "a6")
    await asyncio.sleep(0)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("request", "") for line in lines] == ["a1", "a2", "", "a3", "a4", "a5", "a6"]
