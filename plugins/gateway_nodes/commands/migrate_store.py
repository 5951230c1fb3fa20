"""The command `gateway migrate-store`: from the SQLite file to PostgreSQL, once and for good."""

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
from gateway.outputs import BucketOutputs, DiskOutputs
from gateway.settings import Settings, load_settings
from gateway.settings.bucket import bucket_of
from gateway.store.data_folder import check_network, enter_data, existing_database, lock_data
from gateway.store.moved import Move, move_of
from gateway.store.sqlite import SqliteStore, upgrade
from gateway_nodes.moving import copying, notes, steps
from gateway_nodes.moving.to_bucket import carry, local_outputs

if TYPE_CHECKING:
    from gateway_nodes.moving.target import Target


@click.command("migrate-store")
@click.option(
    "--to",
    "address",
    metavar="ADDRESS",
    help="An empty database, as postgresql://user:password@host/name. Without it that of "
    "GATEWAY_DATABASE_URL, which no list of processes shows.",
)
@click.option("--check", "is_check", is_flag=True, help="Say what would be moved; change nothing.")
@click.option(
    "--take-back",
    "is_taken_back",
    is_flag=True,
    help="Let the gateway run on the file again, where a move was cut off before its end.",
)
@one_sentence
def migrate_store(*, address: str | None, is_check: bool, is_taken_back: bool) -> None:
    """Move the SQLite database into an empty PostgreSQL.

    Stop the gateway first. Nothing runs on the file afterwards: a transfer must not pay in two
    databases.
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
    # Most gateways have no PostgreSQL, and the help of this command is theirs, too.
    from gateway_nodes.moving.target import open_target  # noqa: PLC0415

    return open_target(address)


# -- the move


def _move(settings: Settings, path: Path, address: str) -> None:
    """Copy outputs to the bucket, then move the database, or end a move that was cut off."""
    # Mistakes in the address and the settings are found before anything is changed.
    with _open_target(address) as target:
        if _begun(path) is None:
            asyncio.run(_prepare(settings, path))
        target.prepare()
        with steps.open_source(path) as source:
            copied = steps.move(source, target, address)
    if copied is None:
        click.echo("An earlier run had copied everything.")
    else:
        _tell(copied)
    click.echo(
        f"Moved to {notes.shown(address)}. Set GATEWAY_DATABASE_URL to it and start the gateway: "
        f"nothing runs on {path} any more."
    )


def _take_back(path: Path, address: str) -> None:
    with _open_target(address) as target, steps.open_source(path) as source:
        target.prepare()
        steps.take_back(source, target, address)
    click.echo("Taken back: the gateway runs on the file again.")


def _begun(path: Path) -> Move | None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return move_of(db)


async def _prepare(settings: Settings, path: Path) -> None:
    """Bring the file to the newest schema, and every output to where each node finds it."""
    bucket = bucket_of(settings)
    if bucket is None:
        raise SettingsError(
            "The nodes of a gateway share a bucket for outputs, and GATEWAY_OUTPUTS_URL names "
            "none. Set it: the move then copies what lies on this machine's disk."
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
            raise SettingsError(f"Nothing was moved: {error}") from None
    if copied:
        click.echo(f"Copied {copied} outputs from {settings.data_dir} to the bucket.")
    if lost:
        click.echo(f"{lost} outputs are gone or damaged on the disk; their tasks show no file.")


async def _carry_all(
    store: SqliteStore, disk: DiskOutputs, bucket: BucketOutputs
) -> tuple[int, int]:
    """Copy the outputs of every task; returns how many were copied and how many are lost."""
    copied, lost, last = 0, 0, ""
    while batch := await store.read(copying.kept_results, last):
        for task in batch:
            carried = await carry(task.result, disk, bucket)
            if carried.copied:
                await store.write(copying.replace_result, task.task_id, carried.result)
            copied, lost, last = copied + carried.copied, lost + carried.lost, task.task_id
    return copied, lost


def _tell(copied: copying.Copied) -> None:
    click.echo("Copied and compared, row by row:")
    for name, count in sorted(copied.rows.items()):
        if count:
            click.echo(f"  {name:<24}{count:>12,}")
    if copied.cleaned:
        click.echo(f"{copied.cleaned} texts lost a NUL character, which PostgreSQL cannot store.")


# -- what would be moved


@attrs.frozen
class _Found:
    """What a look at the file finds."""

    rows: dict[str, int]
    local: int


def _check(settings: Settings, path: Path, address: str) -> None:
    begun = _begun(path)
    if begun is not None:
        how = "was moved" if begun.is_done else "has begun to move"
        click.echo(f"The database {how} to {begun.target}.")
    else:
        plan = upgrade.plan(path)
        click.echo(f"The database is of version {plan.version}, to be moved as {plan.target}.")
    found = _look(path)
    for name, count in sorted(found.rows.items()):
        if count:
            click.echo(f"  {name:<24}{count:>12,}")
    bucket = bucket_of(settings)
    click.echo(
        "There is no bucket for outputs: set GATEWAY_OUTPUTS_URL first."
        if bucket is None
        else f"{found.local} outputs lie on this machine's disk; the move copies them to {bucket}."
    )
    with _open_target(address) as target:
        click.echo(f"{notes.shown(address)}: {target.describe()}.")


def _look(path: Path) -> _Found:
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
        tables = copying.tables_of(db)
        rows = {table.name: copying.count(db, table) for table in tables}
        local, last = 0, ""
        while batch := copying.kept_results(db, last):
            local += sum(len(local_outputs(task.result)) for task in batch)
            last = batch[-1].task_id
    return _Found(rows, local)
