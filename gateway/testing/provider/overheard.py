"""Everything the gateway and its libraries log while a scene plays, as production would show it."""

import contextlib
import logging
from collections.abc import Iterator, MutableMapping
from typing import Any

import structlog


class Overheard(logging.Handler):
    """Keeps log lines, and prints them for a test that failed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a library's warning."""
        self.lines.append(self.format(record))

    def event(self, _: Any, method: str, event: MutableMapping[str, Any]) -> str:
        """Keep one of our events, with its exception as the log would show it."""
        shown = structlog.processors.format_exc_info(None, method, event)
        line = f"{method}: {dict(shown)}"
        self.lines.append(line)
        return line


@contextlib.contextmanager
def overhearing() -> Iterator[Overheard]:
    """Listen; afterwards, logs go where they went before."""
    heard, before = Overheard(), structlog.get_config()
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
