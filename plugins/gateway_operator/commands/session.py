"""Opens store and chain for one command.

It may run beside the gateway: the database resolves races, and a refund's nonce lets the token pay
it only once.
"""

import contextlib
import getpass
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

from gateway.catalog.catalog import Catalog
from gateway.catalog.live_changes import LiveChanges
from gateway.chain.client import Web3Chain
from gateway.chain.keys import load_key, load_settlement_keys
from gateway.contracts import PluginContext
from gateway.errors import SettingsError
from gateway.payments import Refunds
from gateway.settings import Settings
from gateway.store.data_folder import check_network, enter_data, existing_database, open_store
from gateway.store.disk import full_disk
from gateway.store.sqlite import migrations
from gateway_operator.audit_log import Actor
from gateway_operator.desk.desk import Desk


def shell_actor() -> Actor:
    """Return the shell's user, for the audit log."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        # A container's user may have no name.
        name = "shell"
    return Actor(door="cli", name=name)


@contextlib.asynccontextmanager
async def open_session(
    settings: Settings, *, catalog: Catalog | None = None
) -> AsyncIterator[Desk]:
    """Open the desk without a server.

    Raises `SettingsError` if the database is missing, older than this version or of another
    network, or if one key would both settle and refund.
    """
    enter_data(settings)
    if not settings.database_url:
        _check_version(existing_database(settings))
    secret = load_key(settings, "refund")
    if secret is not None and secret in load_settlement_keys(settings):
        raise SettingsError(
            "GATEWAY_REFUND_KEY is the settlement key. Refunds need a key of their own."
        )
    chain = Web3Chain(settings)
    async with open_store(settings, name="gateway command") as store:
        await check_network(settings, store)
        context = PluginContext(settings=settings, chain=chain, journal=store, now=time.time)
        refunds = Refunds(store, context, secret) if secret is not None else None
        changes = LiveChanges(catalog, store, time.time) if catalog is not None else None
        if changes is not None:
            await changes.poll()
        try:
            yield Desk(
                settings=settings,
                store=store,
                chain=chain,
                now=time.time,
                refunds=refunds,
                catalog=catalog,
                changes=changes,
            )
        finally:
            await chain.close()


def _check_version(path: Path) -> None:
    """Refuse an older database: a migration would change tables of a running gateway."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as error:
        raise full_disk(path.parent, error) or SettingsError(
            f"The database {path} cannot be opened ({error})."
        ) from None
    if version < migrations.migrations()[-1][0]:
        raise SettingsError("The database is of an older version. Start this gateway once first.")
