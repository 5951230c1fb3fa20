"""The command `gateway migrate`: what an upgrade changes in the database, and the change itself."""

import asyncio

import click

from gateway.cli.terminal import one_sentence
from gateway.errors import SettingsError
from gateway.settings import Settings, load_settings
from gateway.store import SqliteStore
from gateway.store.data_folder import enter_data, existing_database, lock_data
from gateway.store.sqlite import upgrade


@click.command()
@click.option("--check", "is_check", is_flag=True, help="Say what would change; change nothing.")
@one_sentence
def migrate(*, is_check: bool) -> None:
    """Bring the database to this version's schema, as a start does.

    A copy is made first: gateway.db.before-<version>.
    """
    settings = load_settings()
    if settings.database_url:
        raise SettingsError(
            "The nodes bring a PostgreSQL to the newest schema themselves, when they start; "
            "`gateway migrate` is for SQLite files."
        )
    enter_data(settings)
    plan = upgrade.plan(existing_database(settings))
    for line in _describe(plan):
        click.echo(line)
    if is_check or not (plan.target > plan.version or plan.of_plugins):
        return
    _migrate(settings)
    if plan.target > plan.version:
        click.echo(f"Done. The copy from before is {plan.copy}.")
    else:
        click.echo("Done.")


def _describe(plan: upgrade.Plan) -> list[str]:
    of_plugins = [f"  applies the tables of a plugin: {title}" for title in plan.of_plugins]
    if plan.target == plan.version:
        rest = "Only plugins add to it." if of_plugins else "There is nothing to change."
        return [f"The database is of version {plan.version}. {rest}", *of_plugins]
    lines = [f"From version {plan.version} to {plan.target}."]
    lines += [f"  adds {name}" for name in plan.added]
    lines += [f"  removes {name}" for name in plan.removed]
    lines += of_plugins
    lines.append(f"A gateway that knows version {plan.readable_by} can run on it afterwards.")
    lines.append(
        f"The copy before needs {plan.copy_bytes / 10**6:,.1f} MB; "
        f"{plan.free_bytes / 10**6:,.0f} MB free."
    )
    return lines


def _migrate(settings: Settings) -> None:
    lock = lock_data(settings)
    try:
        asyncio.run(_open_once(settings))
    finally:
        lock.close()


async def _open_once(settings: Settings) -> None:
    async with SqliteStore(settings.data_dir / "gateway.db"):
        pass
