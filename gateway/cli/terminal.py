"""What all commands share: one sentence for an operator's mistake, and common options.

Printing tables is in `gateway.cli.tables`: it loads rich, which `serve` starts without.
"""

import math
import sqlite3
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from gateway.errors import ActionRefused, BackupFailed, ChainUnavailable, SettingsError


def one_sentence(command: Callable[..., None]) -> Callable[..., None]:
    """Print an error that an operator can mend as one sentence, and exit with code 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (SettingsError, ActionRefused, BackupFailed, ChainUnavailable) as error:
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
    help="Print one line a row with everything in full, however long it gets.",
)


def blank_control_chars(text: str) -> str:
    """Return a text without control characters: a stranger's words must not steer the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


class FiniteRange(click.FloatRange):
    """A number in a range. `nan` is refused: it is neither below nor above any limit."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the number; fails as click does for what is no number in the range."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number
