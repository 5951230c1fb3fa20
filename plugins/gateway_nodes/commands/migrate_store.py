"""The command `gateway migrate-store`: migrates from SQLite to PostgreSQL, permanently."""

import asyncio
import contextlib
import sqlite3
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from gateway.cli.terminal import one_sentence
from gateway.contracts.outputs import OutputStoreUnavailable
from gateway.errors import SettingsError
from gateway.outputs import DiskOutputs
from gateway.settings import Settings, load_settings
from gateway.store import SqliteStore
from gateway.store.data_folder import check_network, enter_data, existing_database, lock_data
from gateway.store.sqlite import upgrade
from gateway.store.sqlite.migrations import StoreMigration, migration_of
from gateway_bucket.outputs import BucketOutputs
from gateway_bucket.settings import bucket_of
from gateway_nodes.store_migration import copying, notes, steps
from gateway_nodes.store_migration.to_bucket import carry, local_outputs

if TYPE_CHECKING:
    from gateway_nodes.store_migration.target import Target


@click.command("migrate-store")
@click.option(
    "--to",
    "address",
    metavar="ADDRESS",
    help="An empty database, as postgresql://user:password@host/name. Default: "
    "GATEWAY_DATABASE_URL, which keeps the password out of the process list.",
)
@click.option("--check", "is_check", is_flag=True, help="Only show what would be migrated.")
@click.option(
    "--take-back",
    "is_taken_back",
    is_flag=True,
    help="Use the SQLite file again after an interrupted migration.",
)
@one_sentence
def migrate_store(*, address: str | None, is_check: bool, is_taken_back: bool) -> None:
    """Migrate from SQLite to an empty PostgreSQL database.

    Stop the gateway first. Afterwards it no longer uses the SQLite file, so that no transfer can
    pay in both databases.
    """
    settings = load_settings()
    address = address or settings.database_url
    if not address:
        raise SettingsError("Name the database: gateway migrate-store --to postgresql://…")
    enter_data(settings)
    path = existing_database(settings)
    if is_check:
        _check(settings, path, address)
        return
    lock = lock_data(settings)
    try:
        if is_taken_back:
            _take_back(path, address)
        else:
            _move(settings, path, address)
    finally:
        lock.close()


def _open_target(address: str) -> "contextlib.AbstractContextManager[Target]":
    if find_spec("psycopg") is None:
        raise SettingsError("PostgreSQL needs an extra: pip install 'generation-gateway[postgres]'")
    # Imported late, so that the help works without psycopg.
    from gateway_nodes.store_migration.target import open_target  # noqa: PLC0415

    return open_target(address)


# -- the migration


def _move(settings: Settings, path: Path, address: str) -> None:
    """Copy outputs to the bucket, then migrate or finish an interrupted run."""
    # Find mistakes in the URL and the settings before anything changes.
    with _open_target(address) as target:
        if _find_migration(path) is None:
            asyncio.run(_prepare(settings, path))
        target.prepare()
        with steps.open_source(path) as source:
            copied = steps.migrate_rows(source, target, address)
    if copied is None:
        click.echo("An earlier run had copied everything.")
    else:
        _print_counts(copied)
    click.echo(
        f"Migrated to {notes.shown(address)}. Set GATEWAY_DATABASE_URL to it and start the "
        f"gateway: it no longer uses {path}."
    )


def _take_back(path: Path, address: str) -> None:
    with _open_target(address) as target, steps.open_source(path) as source:
        target.prepare()
        steps.take_back(source, target, address)
    click.echo("Taken back: the gateway uses the SQLite file again.")


def _find_migration(path: Path) -> StoreMigration | None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return migration_of(db)


async def _prepare(settings: Settings, path: Path) -> None:
    bucket = bucket_of(settings)
    if bucket is None:
        raise SettingsError(
            "Nodes need a shared bucket for outputs, but GATEWAY_OUTPUTS_URL is not set. Set it: "
            "the migration then copies the outputs on this machine's disk."
        )
    async with SqliteStore(path) as store:
        await check_network(settings, store)
        secret = await store.known_meta("file_secret")
        if secret is None:
            return
        disk = DiskOutputs(settings.data_dir / "outputs", secret)
        try:
            copied, lost = await _carry_all(store, disk, BucketOutputs(bucket, secret))
        except OutputStoreUnavailable as error:
            raise SettingsError(f"Nothing was migrated: {error}") from None
    if copied:
        click.echo(f"Copied {copied} outputs from {settings.data_dir} to the bucket.")
    if lost:
        click.echo(f"{lost} outputs are missing or damaged on disk; their tasks will have no file.")


async def _carry_all(
    store: SqliteStore, disk: DiskOutputs, bucket: BucketOutputs
) -> tuple[int, int]:
    copied, lost, last = 0, 0, ""
    while batch := await store.read(copying.kept_results, last):
        for task in batch:
            carried = await carry(task.result, disk, bucket)
            if carried.copied:
                await store.write(copying.replace_result, task.task_id, carried.result)
            copied, lost, last = copied + carried.copied, lost + carried.lost, task.task_id
    return copied, lost


def _print_counts(copied: copying.Copied) -> None:
    click.echo("Copied and verified, row by row:")
    for name, count in sorted(copied.rows.items()):
        if count:
            click.echo(f"  {name:<24}{count:>12,}")
    if copied.cleaned:
        click.echo(f"{copied.cleaned} texts lost a NUL character, which PostgreSQL cannot store.")


# -- the preview


@attrs.frozen
class _Found:
    rows: dict[str, int]
    local: int


def _check(settings: Settings, path: Path, address: str) -> None:
    migration = _find_migration(path)
    if migration is not None:
        how = "was migrated" if migration.is_done else "is partly migrated"
        click.echo(f"The database {how} to {migration.target}.")
    else:
        plan = upgrade.plan(path)
        click.echo(f"The database has version {plan.version}; the migrated one has {plan.target}.")
    found = _inspect(path)
    for name, count in sorted(found.rows.items()):
        if count:
            click.echo(f"  {name:<24}{count:>12,}")
    bucket = bucket_of(settings)
    click.echo(
        "No bucket for outputs: set GATEWAY_OUTPUTS_URL first."
        if bucket is None
        else f"{found.local} outputs on this machine's disk will be copied to {bucket}."
    )
    with _open_target(address) as target:
        click.echo(f"{notes.shown(address)}: {target.describe()}.")


def _inspect(path: Path) -> _Found:
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
        tables = copying.tables_of(db)
        rows = {table.name: copying.count(db, table) for table in tables}
        local, last = 0, ""
        while batch := copying.kept_results(db, last):
            local += sum(len(local_outputs(task.result)) for task in batch)
            last = batch[-1].task_id
    return _Found(rows, local)
