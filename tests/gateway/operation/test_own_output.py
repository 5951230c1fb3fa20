"""A process's own standard output, which this test process cannot observe in itself."""

import json
import subprocess
import sys

PROGRAM = """
import structlog
from gateway.telemetry.redaction import Redactor, hide_prompt
from gateway.telemetry.logs import configure_logs, redacted_output

redactor = Redactor(["MARKER-of-a-key"])
configure_logs("json", redactor)
with redacted_output(redactor):
    hide_prompt('"event": "task.completed", "level": "info"')
    structlog.get_logger().info("task.completed", task="a", said="MARKER-of-a-key")
    print("of a plugin: MARKER-of-a-key")
"""

NAMES = """
import logging
import structlog
from gateway.telemetry.redaction import Redactor, hide_prompt
from gateway.telemetry.spans import Spans
from gateway.telemetry.logs import configure_logs, redacted_output

def fails(name, about):
    raise RuntimeError

redactor = Redactor(["MARKER-of-a-key", "marker.of_a_key"])
configure_logs("json", redactor)
with redacted_output(redactor):
    hide_prompt("marker.of_a_prompt")
    log = structlog.get_logger()
    log.info("marker.of_a_key")
    log.info("marker.of_a_prompt")
    log.info("x.y", logger="MARKER-of-a-key")
    log.info("x.y", **{"MARKER-of-a-key": 1})
    log.info("x.y", logger=logging.getLogger("a"))
    hide_prompt("tracing.failed")
    with Spans((fails,)).around("request", {}):
        log.info("tracing.failed")
"""


def test_a_prompt_that_looks_like_the_log_takes_no_line_apart():
    line, printed = run(PROGRAM)
    fields = json.loads(line)
    del fields["timestamp"]
    assert fields == {"event": "task.completed", "level": "info", "task": "a", "said": "…"}
    assert printed == "of a plugin: …"


def test_a_plugin_that_logs_a_secret_as_a_name_or_an_event_shows_none():
    logged = [json.loads(line) for line in run(NAMES)]
    for line in logged:
        del line["timestamp"], line["level"]
    assert logged == [
        {"event": "…"},
        {"event": "…"},
        {"event": "x.y", "logger": "…"},
        {"event": "x.y", "…": 1},
        {"event": "x.y", "logger": "<Logger a (WARNING)>"},
        # Our own event, followed by a plugin's event of the same name.
        {"event": "tracing.failed", "span": "request", "error": "RuntimeError"},
        {"event": "tracing.failed"},
    ]


def run(program: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    return ran.stdout.splitlines()
