"""How commands speak: tables or JSON, and one sentence for a person's mistake."""

import json
import sqlite3
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from gateway.errors import ChainUnavailable, RefundRefused, SettingsError


def one_sentence(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a mistake in the settings into one sentence and exit code 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (SettingsError, RefundRefused, ChainUnavailable) as error:
            click.echo(f"gateway: {error}", err=True)
            sys.exit(1)
        except sqlite3.OperationalError as error:
            click.echo(f"gateway: The database does not answer ({error}). Try again.", err=True)
            sys.exit(1)

    return run


def print_rows(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print rows of the same keys, as JSON or as a table."""
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    shown = [tuple(_shown(value) for value in row.values()) for row in rows]
    print_table(tuple(rows[0]) if rows else (), shown)


def _shown(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def print_table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table as wide as the terminal; nothing in it is markup, nothing is cut."""
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, header_style="bold", pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", no_wrap=not place)  # what a row is called
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)
