"""Backups of the database in a bucket or folder: schedule, rotation, restore drills, restores.

`gateway_backups.sqlite` and `gateway.store.sqlite.upgrade` do the copying itself.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from gateway import hookimpl
from gateway.contracts.parts import Part
from gateway.running.gateway import Gateway
from gateway.settings import Settings
from gateway_backups.settings import BackupSettings, backup_settings_of


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define GATEWAY_BACKUP_… and GATEWAY_RESTORE."""
    register("", BackupSettings)


@hookimpl
def register_check_rows(
    register: Callable[[str, Callable[[], Awaitable[str]]], None], settings: Settings
) -> None:
    """Add the age of the newest copy to `gateway check`."""
    # Without a place, the checklist of `gateway check` names the setting.
    if settings.database_url or backup_settings_of(settings).backup_url:
        register("copies", lambda: _check_copies(settings))


async def _check_copies(settings: Settings) -> str:
    if settings.database_url:
        return "left to PostgreSQL's own tools, such as pg_dump"
    from gateway_backups.place import place_of  # noqa: PLC0415 - of this command only

    place = place_of(settings)
    copies = await asyncio.to_thread(place.probe)
    if not copies:
        return f"{place}: no copy yet"
    age_min = (time.time() - copies[0].at) / 60
    counted = "1 copy" if len(copies) == 1 else f"{len(copies)} copies"
    return f"{place}: {counted}, the newest {age_min:,.0f} min old"


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Register the backups, if a place for them is set."""
    if not backup_settings_of(gateway.settings).backup_url:
        return
    from gateway_backups.schedule import Backups  # noqa: PLC0415 - most gateways make no copies

    backups = Backups(settings=gateway.settings, store=gateway.store, now=gateway.now)
    gateway.keep(backups)
    register(Part(name="backups", run=backups.repeat_forever, pending=backups.find_pending))
