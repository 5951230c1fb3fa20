"""Alarms: what needs the operator is told once, by channels that delay nothing (docs/alarms.md)."""
