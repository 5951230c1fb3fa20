"""How commands speak: tables or JSON, and one sentence for a person's mistake."""

import json
import sqlite3
import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from gateway.errors import ChainUnavailable, RefundRefused, SettingsError

if TYPE_CHECKING:
    from gateway.cli.tables import Table


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


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
wide_option = click.option(
    "--wide",
    is_flag=True,
    help="Print a line for each row with everything in full, however long it gets.",
)


def print_rows(
    rows: list[dict[str, Any]],
    *,
    as_json: bool,
    wide: bool = False,
    stacked: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> None:
    """Print rows of the same keys, as JSON or as a table.

    `stacked` returns a row with more lines in a value and fewer keys, for where all its columns
    do not fit.
    """
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        return
    from gateway.cli.tables import print_fitting  # noqa: PLC0415 - rich is heavy

    narrow = _table([stacked(row) for row in rows]) if stacked is not None else None
    print_fitting(_table(rows), narrow, wide=wide)


def _table(rows: list[dict[str, Any]]) -> "Table":
    from gateway.cli.tables import Table  # noqa: PLC0415

    shown = [[_shown(value) for value in row.values()] for row in rows]
    return Table(headings=list(rows[0]), rows=shown)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)
