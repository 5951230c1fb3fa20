"""The commands `gateway backup`, `backups`, `drill` and `restore`."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gateway.cli.terminal import json_option, one_sentence, wide_option
from gateway.errors import SettingsError
from gateway.settings import Settings, load_settings
from gateway_backups import sqlite as backup
from gateway_backups.names import Copy
from gateway_backups.records import BackupRecord, Forgotten, Kind
from gateway_backups.restoring import restore as restore_copy
from gateway_backups.schedule import Backups
from gateway_backups.settings import backup_settings_of
from gateway_operator.commands.session import open_session, shell_actor
from gateway_operator.desk import backups as service
from gateway_operator.desk.desk import Desk


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@one_sentence
def back_up(*, file: Path | None) -> None:
    """Write a consistent copy of the database to FILE.

    Without FILE the copy goes to GATEWAY_BACKUP_URL, compressed. The gateway may keep running.
    """
    settings = _load_settings()
    if file is not None:
        size = backup.back_up(settings, file)
        click.echo(f"{file}: {size:,} bytes.")
        return
    row, _ = asyncio.run(_run_now(settings, "backup"))
    click.echo(f"{row.name}: {row.size_bytes:,} bytes.")


@click.command("backups")
@json_option
@wide_option
@one_sentence
def list_copies(*, as_json: bool, wide: bool) -> None:
    """List the copies in GATEWAY_BACKUP_URL, newest first."""
    # Loads rich, which the other commands do not need.
    from gateway_operator.tables import print_rows  # noqa: PLC0415

    copies, status = asyncio.run(_read_copies(_load_settings()))
    if not copies and not as_json:
        click.echo("There are no copies yet: gateway backup")
        return
    print_rows([_make_row(copy) for copy in copies], as_json=as_json, wide=wide)
    if not as_json:
        for line in _describe(status):
            click.echo(line)


@click.command()
@one_sentence
def drill() -> None:
    """Restore the newest copy beside the database, and compare."""
    row, forgotten = asyncio.run(_run_now(_load_settings(), "drill"))
    click.echo(f"{row.name} can be restored. A restore now would forget {forgotten}.")


@click.command()
@click.argument("copy")
@one_sentence
def restore(*, copy: str) -> None:
    """Replace the database by a copy.

    COPY is a file, `latest`, a name that `gateway backups` lists, or an s3:// address. Transfers
    made before the restore no longer pay for anything.
    """
    done = restore_copy(_load_settings(), copy, shell_actor(), now=time.time())
    if done.old is not None:
        click.echo(f"The previous database is now {done.old}.")
        forgets = "an unknown number of payments" if done.forgotten is None else str(done.forgotten)
        click.echo(f"The restore forgets {forgets}.")
    click.echo(
        "Restored. Transfers that are already on-chain no longer pay for anything; "
        "`gateway transfers unused --hours 0` lists those that the copy lacks."
    )
    click.echo(
        "Sessions were ended and tokens revoked: log in and make new ones. Passkeys and codes are "
        "those of the copy: any that you removed since must be removed again on /admin/access."
    )


def _load_settings() -> Settings:
    """Load the settings; raises `SettingsError` if the database is a PostgreSQL."""
    settings = load_settings()
    if settings.database_url:
        raise SettingsError(
            "`gateway backup`, `backups`, `drill` and `restore` are for SQLite files. A PostgreSQL "
            "is copied and restored by its own tools: pg_dump, or those of your provider."
        )
    return settings


async def _run_now(settings: Settings, kind: Kind) -> tuple[BackupRecord, Forgotten | None]:
    async with open_session(settings) as desk:
        found = _open_copies(settings, desk)
        row = await service.run_now(desk, found, shell_actor(), kind)
    return row, Forgotten(**row.details) if kind == "drill" and row.details else None


async def _read_copies(settings: Settings) -> tuple[list[Copy], service.BackupStatus]:
    async with open_session(settings) as desk:
        found = _open_copies(settings, desk)
        return await service.copies(found), await service.status(desk)


def _open_copies(settings: Settings, desk: Desk) -> Backups | None:
    if not backup_settings_of(settings).backup_url:
        return None
    return Backups(settings=settings, store=desk.store, now=desk.now)


def _make_row(copy: Copy) -> dict[str, Any]:
    made = datetime.fromtimestamp(copy.at, UTC)
    return {"copy": copy.name, "made": f"{made:%Y-%m-%d %H:%M:%S}", "bytes": copy.size_bytes}


def _describe(status: service.BackupStatus) -> list[str]:
    lines = []
    if status.forgotten is not None:
        lines.append(f"A restore of the newest would forget {status.forgotten}.")
    if status.failed is not None:
        lines.append(f"The last attempt failed: {status.failed.error}")
    if status.drill is None:
        lines.append("No copy was tested yet: gateway drill")
    elif status.drill.error is not None:
        lines.append(f"The last drill failed: {status.drill.error}")
    else:
        tried = datetime.fromtimestamp(status.drill.at, UTC)
        lines.append(f"The last drill succeeded on {tried:%Y-%m-%d %H:%M:%S}.")
    return lines
