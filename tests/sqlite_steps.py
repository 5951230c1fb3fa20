"""Counts the steps of SQLite's virtual machine, which do not depend on the computer."""

import sqlite3
from collections.abc import Callable


def count_steps(db: sqlite3.Connection, function: Callable[[], object]) -> int:
    """Return how many steps of SQLite's machine a function takes; a row takes a few of them."""
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    db.set_progress_handler(count, 1)
    try:
        function()
    finally:
        db.set_progress_handler(None, 1)
    return steps
