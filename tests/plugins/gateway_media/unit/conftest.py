"""Fixtures: an installed third-party plugin, and the command."""

from tests.third_party_plugins import command, install

__all__ = ["command", "install"]
