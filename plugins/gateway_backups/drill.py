"""The drill: restores the newest copy to a file beside the database and compares the two.

Everything here blocks, so it runs in a thread.
"""

import contextlib
import sqlite3
from pathlib import Path

import attrs

from gateway.errors import BackupFailed, SettingsError
from gateway.settings import Settings
from gateway_backups import records
from gateway_backups.copying import alone, check_room, newest_of, read_origin, temporary, unpack
from gateway_backups.names import Copy
from gateway_backups.place import Place
from gateway_backups.records import Forgotten
from gateway_backups.sqlite import check_copy


@attrs.frozen(kw_only=True)
class Drilled:
    """A copy that can be restored, and the payments that a restore would lose."""

    copy: Copy
    forgotten: Forgotten


def find_newest(settings: Settings, place: Place) -> Copy:
    """Return this gateway's newest copy; raises `BackupFailed` if there is none."""
    copy = newest_of(place.copies(), read_origin(settings))
    if copy is None:
        raise BackupFailed(f"{place} has no copy of this gateway yet: run gateway backup")
    return copy


def drill(settings: Settings, place: Place, copy: Copy, now: float) -> Drilled:
    """Restore a copy beside the live database, check it as a restore does, and compare the two.

    Raises `BackupFailed` if the copy cannot be restored.
    """
    with alone(settings):
        check_room(settings, "A drill restores a copy beside the database")
        path = temporary(settings, "drill")
        unpack(
            place.read(copy.name),
            path,
            what=f"The copy {copy.name}",
            floor_bytes=settings.min_free_disk_mb * 10**6,
        )
        try:
            last_payment = _check(settings, path)
        except (SettingsError, sqlite3.Error) as error:
            raise BackupFailed(f"The copy {copy.name} cannot be restored: {error}") from None
    with contextlib.closing(sqlite3.connect(settings.data_dir / "gateway.db")) as live:
        forgotten = records.forgotten(live, last_payment, copy.at, now)
    return Drilled(copy=copy, forgotten=forgotten)


def _check(settings: Settings, path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        check_copy(db, settings)
        return records.last_payment(db)
