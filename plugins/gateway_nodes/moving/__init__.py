"""Moves a gateway from its SQLite file to PostgreSQL, once, so that only one of them ever sells."""
