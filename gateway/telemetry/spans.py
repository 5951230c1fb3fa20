"""Tracing spans around requests, task attempts and provider calls, opened by plugins."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import attrs
import structlog

About = dict[str, str | int]
"""A span's attributes; the gateway adds some of them at the end, such as the status."""
OpenSpan = Callable[[str, About], AbstractContextManager[object]]
"""Returns a context manager that is entered when the work begins and left when it ends."""

_log = structlog.get_logger()


@attrs.frozen
class Spans:
    """The plugins' span openers; usually none."""

    openers: tuple[OpenSpan, ...] = ()

    @contextlib.contextmanager
    def around(self, name: str, about: About) -> Iterator[None]:
        """Open a span of every plugin around the block.

        A plugin's exception is logged and ignored. If the block raises, `about` gets the class name
        as `error`, never the message: it may quote a prompt.
        """
        with contextlib.ExitStack() as opened:
            for opener in self.openers:
                opened.enter_context(_contained(opener, name, about))
            try:
                yield
            except BaseException as error:
                about["error"] = type(error).__name__
                raise


@contextlib.contextmanager
def _contained(opener: OpenSpan, name: str, about: About) -> Iterator[None]:
    span = None
    try:
        span = opener(name, about)
        span.__enter__()
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        _log.warning("tracing.failed", span=name, error=type(error).__name__)
        span = None
    try:
        yield
    finally:
        if span is not None:
            try:
                span.__exit__(None, None, None)
            except Exception as error:  # noqa: BLE001 - as above
                _log.warning("tracing.failed", span=name, error=type(error).__name__)
