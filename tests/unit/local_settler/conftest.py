"""Fixtures: a clock."""

import pytest


class Clock:
    """A clock that the test sets."""

    now = 6_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()
