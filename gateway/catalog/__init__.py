"""Endpoints on sale, and whether their providers work."""
