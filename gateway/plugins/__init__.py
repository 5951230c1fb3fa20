"""Finds and loads plugins, and calls their hooks.

The bundled plugins are in the repository's folders `plugins/` and `providers/`.
"""
