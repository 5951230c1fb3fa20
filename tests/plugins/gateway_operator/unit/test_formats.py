"""Formats of the operator's pages."""

import pytest

from gateway_operator.pages.formats import browser

_CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36"


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (_CHROME, "Chrome on Linux"),
        (f"{_CHROME} Edg/156.0", "Edge on Linux"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Safari/604.1", "Safari on iPhone"),
        ("curl/8.5.0", "curl/8.5.0"),
    ],
)
def test_a_browser_is_named_by_its_name_and_system(agent, words):
    assert browser(agent) == words
