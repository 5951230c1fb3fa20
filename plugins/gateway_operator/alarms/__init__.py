"""Alarms: notify the operator of conditions once, without delaying requests (docs/alarms.md)."""
