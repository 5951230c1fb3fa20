"""How results are printed: under the day, the machine and its load."""

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime

from place import CORES
from rich.console import Console
from rich.table import Table

_WIDTH = 120


def print_head() -> Console:
    """Print what the figures depend on, and return where tables go."""
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
    """Return the least and the most of some values."""
    ranked = sorted(values)
    return f"{ranked[0]:,.0f} to {ranked[-1]:,.0f}"
