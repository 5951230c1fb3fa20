"""Finds and loads plugins, and calls their hooks.

Does not belong here: the bundled plugins themselves, which are in the folders `plugins/` and
`providers/` of the repository, and what happens to a task that was paid for (`gateway.tasks`).
"""
