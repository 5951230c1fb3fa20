"""What is fuzzed, opened once for a module."""

import pytest

from tests.proof.fuzz import kinds


@pytest.fixture(scope="module")
def every():
    """Return every kind of input by its name; all of them go to one gateway."""
    with kinds.opened() as opened:
        yield {kind.name: kind for kind in opened}
