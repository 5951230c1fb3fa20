"""The command `gateway migrate`: migrates the SQLite database, or shows what would change."""

import asyncio
import contextlib

import click

from gateway.cli.terminal import one_sentence
from gateway.errors import SettingsError
from gateway.settings import Settings, load_settings
from gateway.store import SqliteStore
from gateway.store.data_folder import enter_data, existing_database, lock_data
from gateway.store.sqlite import upgrade


@click.command()
@click.option("--check", "is_check", is_flag=True, help="Only show what would change.")
@one_sentence
def migrate(*, is_check: bool) -> None:
    """Migrate the database (`serve` does this too).

    Makes a backup first: gateway.db.before-<version>.
    """
    settings = load_settings()
    if settings.database_url:
        raise SettingsError(
            "Nodes migrate a PostgreSQL database when they start; `gateway migrate` is for SQLite."
        )
    enter_data(settings)
    plan = upgrade.plan(existing_database(settings))
    for line in _describe(plan):
        click.echo(line)
    if is_check or not (plan.target > plan.version or plan.of_plugins):
        return
    with contextlib.closing(lock_data(settings)):
        asyncio.run(_open_once(settings))
    if plan.target > plan.version:
        click.echo(f"Done. The backup is {plan.copy}.")
    else:
        click.echo("Done.")


def _describe(plan: upgrade.Plan) -> list[str]:
    of_plugins = [f"  migrates a plugin: {title}" for title in plan.of_plugins]
    if plan.target == plan.version:
        rest = "Only plugins have migrations." if of_plugins else "There is nothing to migrate."
        return [f"The database has version {plan.version}. {rest}", *of_plugins]
    lines = [f"From version {plan.version} to {plan.target}."]
    lines += [f"  adds {name}" for name in plan.added]
    lines += [f"  removes {name}" for name in plan.removed]
    lines += of_plugins
    lines.append(f"Gateways for version {plan.readable_by} and later can use it afterwards.")
    lines.append(
        f"The backup needs {plan.copy_bytes / 10**6:,.1f} MB; "
        f"{plan.free_bytes / 10**6:,.0f} MB are free."
    )
    return lines


async def _open_once(settings: Settings) -> None:
    async with SqliteStore(settings.data_dir / "gateway.db"):
        pass
