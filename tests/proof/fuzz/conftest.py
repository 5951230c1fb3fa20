"""The fuzzed parsers and routes, opened once per module."""

import pytest

from tests.proof.fuzz import kinds


@pytest.fixture(scope="module")
def every():
    """Return every kind of input by name; all share one gateway."""
    with kinds.opened() as opened:
        yield {kind.name: kind for kind in opened}
