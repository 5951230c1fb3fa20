"""Tracing spans around requests, task attempts and provider calls, opened by plugins."""

import contextlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager

import attrs
import structlog

About = dict[str, str | int]
"""A span's attributes; the gateway adds some of them at the end, such as the status."""
OpenSpan = Callable[[str, About], AbstractContextManager[object]]
"""Returns a context manager that is entered when the work begins and left when it ends."""

_log = structlog.get_logger()


@attrs.define(eq=False, repr=False)
class Spans:
    """The plugins' span openers; usually none."""

    openers: tuple[OpenSpan, ...] = ()

    def remove(self, openers: Collection[OpenSpan]) -> None:
        """Remove openers, of a plugin that was left out."""
        self.openers = tuple(one for one in self.openers if one not in openers)

    @contextlib.contextmanager
    def around(self, name: str, about: About) -> Iterator[None]:
        """Open a span of every plugin around the block.

        A plugin's exception is logged and ignored. If the block raises, `about` gets the class name
        as `error`, never the message: it may quote a prompt.
        """
        opened = []
        for opener in self.openers:
            with _logged(name):
                span = opener(name, about)
                span.__enter__()
                opened.append(span)
        try:
            yield
        except BaseException as error:
            about["error"] = type(error).__name__
            raise
        finally:
            for span in reversed(opened):
                with _logged(name):
                    span.__exit__(None, None, None)


@contextlib.contextmanager
def _logged(name: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
        _log.warning("tracing.failed", span=name, error=type(error).__name__)
