"""docs/logs.md has exactly the events that the code logs."""

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def log_page(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import log_page

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


def test_no_call_of_a_logger_is_overlooked(log_page):
    """Every line with a logger call has an event with a name."""
    for path in log_page._source_files():
        text = path.read_text("utf-8")
        for first in re.findall(r"_log\.(?:info|warning|error|exception)\(\s*([^\s,)]+)", text):
            known = first.startswith(('"', "_LOW[", "_RECOVERED["))
            assert known or first == "event", (path, first)


def test_the_page_shows_each_event_with_its_fields(log_page):
    page = log_page.page()
    assert (
        "- `payment.settled` (`method`, `transaction`): The" in page.partition("## Information")[2]
    )
    assert page.count("\n- `") >= len(log_page.EVENTS)
