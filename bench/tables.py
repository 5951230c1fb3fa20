"""Prints results, with the date, the machine and its load."""

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime

from place import CORES
from rich.console import Console
from rich.table import Table

_WIDTH = 120


def print_head() -> Console:
    """Print the conditions of the run, and return the console for the tables."""
    console = Console(width=max(_WIDTH, Console().width))
    console.print(
        f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, "
        f"{len(CORES)} cores, load {os.getloadavg()[0]:.1f}"
    )
    return console


def print_tables(console: Console, tables: Iterable[Table]) -> None:
    for table in tables:
        table.title_justify = table.caption_justify = "left"
        console.print("", table)


def span(values: Iterable[float]) -> str:
    """Return the smallest and the largest value."""
    ranked = sorted(values)
    return f"{ranked[0]:,.0f} to {ranked[-1]:,.0f}"
