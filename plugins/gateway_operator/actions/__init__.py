"""Operators' decisions. Each is written together with its audit row."""
