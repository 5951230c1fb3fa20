"""docs/logs.md has exactly the events that the code logs."""

import ast
import functools
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def log_page():
    """The module that writes the page. It reads all sources, which takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        import log_page

        patch.setattr(log_page, "find_events", functools.cache(log_page.find_events))
        yield log_page
    for name in ("log_page", "log_events"):
        sys.modules.pop(name, None)


def test_every_event_has_a_meaning_and_every_meaning_an_event(log_page):
    logged = set(log_page.find_events())
    assert logged - set(log_page.EVENTS) == set(), "write what they mean into docs/log_events.py"
    assert set(log_page.EVENTS) - logged == set(), "the code no longer logs these"


def test_every_name_is_one_that_the_log_shows_whole(log_page):
    """Names of another form are searched for secrets, and might be redacted."""
    from gateway.telemetry.logs import _EVENT

    assert [name for name in log_page.find_events() if not _EVENT.fullmatch(name)] == []


def test_a_call_of_any_logger_is_found(log_page):
    tree = ast.parse(
        """
journal = structlog.get_logger()
journal.info("a.plain", task=task)
self._journal.warning("b.stored")
structlog.get_logger().error("c.direct" if is_first else "d.direct")
write = journal.info if is_quiet else journal.exception
write("e.chosen")
future.exception()
"""
    )
    found = [
        (level, sorted(log_page._names_of(call.args[0], tree)))
        for call, level in log_page._log_calls(tree)
    ]
    assert found == [
        ("info", ["a.plain"]),
        ("warning", ["b.stored"]),
        ("error", ["c.direct", "d.direct"]),
        ("exception", ["e.chosen"]),
    ]


@pytest.mark.full
def test_no_call_of_a_logger_is_overlooked(log_page):
    """Each call's events are found, and a logger is used for nothing else."""
    for path in log_page._source_files():
        tree = ast.parse(path.read_text("utf-8"))
        for call, _ in log_page._log_calls(tree):
            assert log_page._names_of(call.args[0], tree), f"{path}:{call.lineno}"
        for line, method in _uses_of_loggers(tree):
            assert method in log_page._LEVELS, f"{path}:{line}"


def _uses_of_loggers(tree):
    """Yield the line and the method of each use of a variable with a logger of structlog."""
    loggers = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and "structlog.get_logger" in ast.unparse(node.value)
        for target in node.targets
    }
    methods = {
        node.value: node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    for node in ast.walk(tree):
        is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        if is_read and node.id in loggers:
            yield node.lineno, methods.get(node)


def test_the_page_shows_each_event_with_its_fields(log_page):
    page = log_page.page()
    assert (
        "- `payment.settled` (`method`, `transaction`): The" in page.partition("## Information")[2]
    )
    assert page.count("\n- `") >= len(log_page.EVENTS)
