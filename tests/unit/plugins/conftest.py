"""Fixtures: an installed third-party plugin, the command, and the log."""

from tests.third_party_plugins import command, install, lines

__all__ = ["command", "install", "lines"]
