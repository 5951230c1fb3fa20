"""Loads plugins, knows what they put on sale, and whether their providers work.

The bundled plugins themselves are in the folders `plugins/` and `providers/` of the repository.
"""
