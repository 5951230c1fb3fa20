"""The contract of a store as tests, one module for each kind of write.

Tests that depend on SQLite are in the repository's `tests/`.
"""
