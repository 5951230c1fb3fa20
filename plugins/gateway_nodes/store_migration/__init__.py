"""Migrates a gateway from SQLite to PostgreSQL, so that only one of them ever sells."""
