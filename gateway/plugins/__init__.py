"""Loads plugins, keeps what they put on sale, and watches whether their providers work.

Does not belong here: the bundled plugins themselves, which are in the folders `plugins/` and
`providers/` of the repository, and what happens to a task that was paid for (`gateway.tasks`).
"""
