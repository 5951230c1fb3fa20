"""What a process writes to its own standard output, which no test in this process has."""

import json
import subprocess
import sys

PROGRAM = """
import structlog
from gateway.redaction import Redactor, hide_prompt
from gateway.web.logs import configure_logs, redacted_output

redactor = Redactor(["MARKER-of-a-key"])
configure_logs("json", redactor)
with redacted_output(redactor):
    hide_prompt('"event": "task.completed", "level": "info"')
    structlog.get_logger().info("task.completed", task="a", said="MARKER-of-a-key")
    print("of a plugin: MARKER-of-a-key")
"""


def test_a_prompt_that_looks_like_the_log_takes_no_line_apart():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True
    )
    line, printed = ran.stdout.splitlines()
    told = json.loads(line)
    del told["timestamp"]
    assert told == {"event": "task.completed", "level": "info", "task": "a", "said": "…"}
    assert printed == "of a plugin: …"
