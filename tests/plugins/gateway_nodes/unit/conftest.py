"""Fixtures: settings without a chain."""

from tests.unit.conftest import settings

__all__ = ["settings"]
