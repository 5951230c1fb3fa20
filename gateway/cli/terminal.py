"""Error handling and options shared by all commands."""

import contextlib
import math
import sqlite3
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from gateway.errors import ActionRefused, BackupFailed, ChainUnavailable, DiskFull, SettingsError


def one_sentence(command: Callable[..., None]) -> Callable[..., None]:
    """Print an operator's mistake as one sentence, and exit with code 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (SettingsError, ActionRefused, BackupFailed, ChainUnavailable) as error:
            click.echo(f"gateway: {error}", err=True)
            sys.exit(1)
        except (DiskFull, sqlite3.OperationalError, OSError) as error:
            sentence = _explain(error)
            if sentence is None:
                raise
            click.echo(f"gateway: {sentence}", err=True)
            sys.exit(1)

    return run


def _explain(error: Exception) -> str | None:
    """Explain an error of the disk or database; None for others."""
    # Slow imports, and `serve` imports this module first.
    from gateway.settings import load_settings  # noqa: PLC0415
    from gateway.store.disk import full_disk, means_full  # noqa: PLC0415

    if isinstance(error, DiskFull) or means_full(error):
        return f"{DiskFull.remedy}."
    if not isinstance(error, sqlite3.OperationalError):
        return None
    with contextlib.suppress(SettingsError, OSError):
        # Without inodes, SQLite only reports that it cannot open the database.
        if full := full_disk(load_settings().data_dir, error):
            return str(full)
    return f"The database does not respond ({error}). Try again."


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
wide_option = click.option(
    "--wide",
    is_flag=True,
    help="Print each row on one line, in full.",
)


class ListGroup(click.Group):
    """A group that lists without a command. A flag before a command is the command's flag."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raises `UsageError` for a given flag that it does not have."""
        name, command, rest = super().resolve_command(ctx, args)
        if name and command:
            own = {parameter.name for parameter in command.params}
            given = {key: value for key, value in ctx.params.items() if value}
            for parameter in self.params:
                if parameter.name in given and parameter.name not in own:
                    raise click.UsageError(f"`{name}` has no option {parameter.opts[0]}.", ctx)
            ctx.default_map = {name: given}
        return name, command, rest


def blank_control_chars(text: str) -> str:
    """Replace control characters: untrusted text must not control the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


class FiniteRange(click.FloatRange):
    """A number in a range. Rejects `nan`, which is neither below nor above any limit."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the number; fails as click does for other values."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number
