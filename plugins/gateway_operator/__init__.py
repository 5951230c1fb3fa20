"""Operator pages, JSON, commands, alarms, books and metrics."""
