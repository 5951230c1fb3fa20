"""Fixtures: an installed plugin of a third party, the command, and the log."""

from tests.third_party_plugins import command, install, lines

__all__ = ["command", "install", "lines"]
