"""Captures what the gateway and its libraries log during a scene, formatted as in production."""

import contextlib
import logging
from collections.abc import Iterator, MutableMapping
from typing import Any

import structlog


class CapturedLogs(logging.Handler):
    """Keeps log lines; pytest prints them for a test that fails."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning of a library."""
        self.lines.append(self.format(record))

    def event(self, _: Any, method: str, event: MutableMapping[str, Any]) -> str:
        """Keep one event of the gateway, with its exception as the log shows it."""
        shown = structlog.processors.format_exc_info(None, method, event)
        line = f"{method}: {dict(shown)}"
        self.lines.append(line)
        return line


@contextlib.contextmanager
def capture_logs() -> Iterator[CapturedLogs]:
    """Capture logs inside the block, and restore the configuration afterwards."""
    heard, before = CapturedLogs(), structlog.get_config()
    structlog.configure(
        processors=[heard.event],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=False,
    )
    logging.getLogger().addHandler(heard)
    try:
        yield heard
    finally:
        logging.getLogger().removeHandler(heard)
        structlog.configure(**before)
