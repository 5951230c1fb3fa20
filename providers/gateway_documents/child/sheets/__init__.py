"""Workbooks and comma-separated values."""
