"""The names and events of log lines: a plugin's are redacted, and the gateway's own stay whole."""

import json
import logging
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
import structlog

from gateway.plugins.installed import BUNDLED
from gateway.telemetry.logs import configure_logs
from gateway.telemetry.redaction import Redactor, hide_prompt

SECRET = "correct.horse_battery"
Log = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def _own_configuration() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    structlog.contextvars.clear_contextvars()
    yield
    hide_prompt(None)
    structlog.contextvars.clear_contextvars()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str]) -> Log:
    """Return a function that logs an event from a module, and returns its line's fields."""
    are_configured = False

    def log_from(module: str, event: Any, /, **fields: Any) -> dict[str, Any]:
        nonlocal are_configured
        # Only now: capsys has another stream for the test than for its fixtures.
        if not are_configured:
            configure_logs("json", Redactor([SECRET]), packages=BUNDLED)
        are_configured = True
        place: dict[str, Any] = {"__name__": module, "logger": structlog.get_logger()}
        exec("def log(event, fields): logger.warning(event, **fields)", place)
        place["log"](event, fields)
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert found.pop("level") == "warning"
        del found["timestamp"]
        return found

    return log_from


@pytest.mark.parametrize("module", ["gateway_acme.provider", "gatewayed", "__main__"])
@pytest.mark.parametrize("hidden", [SECRET, "buyerprompt.com_of_mine"])
def test_what_is_hidden_is_no_name_and_no_event_of_a_plugins(
    log: Log, module: str, hidden: str
) -> None:
    hide_prompt("buyerprompt.com_of_mine")
    assert log(module, hidden) == {"event": "…"}
    assert log(module, "x.y", **{hidden: 1}) == {"event": "x.y", "…": 1}
    assert log(module, "x.y", logger=hidden) == {"event": "x.y", "logger": "…"}
    assert log(module, "x.y", model="pixel-1") == {"event": "x.y", "model": "pixel-1"}


@pytest.mark.parametrize("module", ["gateway.tasks.delivery", "gateway_local_settler.keys"])
@pytest.mark.parametrize(
    "prompt", ["task.completed", "transaction", "timestamp", '"event": "task.completed"']
)
def test_a_prompt_of_our_own_words_changes_no_line_of_ours(
    log: Log, module: str, prompt: str
) -> None:
    hide_prompt(prompt)
    for _ in range(2):
        line = log(module, "task.completed", transaction="0x12", said=f"no {prompt} here", deep=[1])
        expected = {
            "event": "task.completed",
            "transaction": "0x12",
            "said": "no … here",
            "deep": [1],
        }
        assert line == expected


@pytest.mark.parametrize("prompt", ["provider", "exception", "timestamp"])
def test_a_line_of_a_plugins_keeps_the_names_that_every_line_has(log: Log, prompt: str) -> None:
    hide_prompt(prompt)
    structlog.contextvars.bind_contextvars(provider="acme")
    line = log("gateway_acme", "x.y", exc_info=ValueError(SECRET))
    assert line.keys() == {"event", "provider", "exception"}
    assert SECRET not in str(line)


def test_a_name_that_a_plugin_binds_is_cleaned_in_our_lines_too(log: Log) -> None:
    structlog.contextvars.bind_contextvars(**{SECRET: 1})
    for _ in range(2):
        assert log("gateway.tasks.pool", "task.retry_scheduled", delay_s=2) == {
            "…": 1,
            "event": "task.retry_scheduled",
            "delay_s": 2,
        }


def test_a_sentence_of_our_own_is_cleaned(log: Log) -> None:
    hide_prompt("a boat on a lake")
    assert log("gateway.app", "No a boat on a lake.") == {"event": "No …."}


def test_a_library_has_no_event_of_ours(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    log("gateway.app", "task.retry_scheduled")
    logging.getLogger("gateway.app").warning(SECRET)
    assert json.loads(capsys.readouterr().out)["event"] == "…"


@pytest.mark.parametrize("name", ["logger", "value", "event_", "positional_args"])
@pytest.mark.parametrize(
    "value", [logging.getLogger("a"), object(), SECRET.encode(), {(1, SECRET): Decimal(1)}, [set()]]
)
def test_a_value_of_any_type_is_written(log: Log, name: str, value: object) -> None:
    line = log("gateway_acme", "x.y", **{name: value})
    assert line.keys() == {"event", name}
    assert SECRET not in str(line)
