"""Copies the database while the gateway runs, and puts a copy back without forgetting the risk.

A restored database does not know what was paid since its copy was made: those transfers would
pay a second time. So it is born anew, and refuses every transfer that is already on-chain.
"""

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from gateway.errors import SettingsError
from gateway.private_files import create_private
from gateway.settings import Settings
from gateway.store.data_folder import enter_data, existing_database, lock_data
from gateway.store.migrations import migrate

_SIDE_FILES = ("-wal", "-shm")


def back_up(settings: Settings, target: Path) -> int:
    """Write a consistent copy of the database to a new file; returns its bytes."""
    enter_data(settings)
    source = existing_database(settings)
    try:
        create_private(target)
    except FileExistsError:
        raise SettingsError(f"{target} exists already. Name a new file.") from None
    except OSError as error:
        raise SettingsError(
            f"The copy {target} cannot be written ({error.strerror}). Name a file where the owner "
            f"of {settings.data_dir} may write, such as {settings.data_dir / 'copy.db'}."
        ) from None
    try:
        with contextlib.closing(sqlite3.connect(source)) as db:
            db.execute("VACUUM INTO ?", (str(target),))
    except sqlite3.Error as error:
        target.unlink()
        raise SettingsError(f"The copy {target} cannot be written ({error}).") from None
    return target.stat().st_size


def restore(settings: Settings, copy: Path, *, now: float) -> Path | None:
    """Put a copy in the database's place; returns where the old one lies now, if there was one.

    Raises `SettingsError` while a gateway runs on the folder, or where the copy is no database
    of this network.
    """
    enter_data(settings)
    lock = lock_data(settings)
    try:
        fresh = settings.data_dir / "gateway.db.restoring"
        _copy(copy, fresh)
        _bear_anew(fresh, settings, now)
        old = _put_aside(settings, now)
        fresh.replace(_database(settings))
        return old
    finally:
        lock.close()


def _copy(copy: Path, fresh: Path) -> None:
    if not os.access(copy, os.R_OK):
        raise SettingsError(
            f"There is no file {copy}, or the owner of {fresh.parent} may not read it. Put "
            "it there, and give it to that owner (chown)."
        )
    fresh.unlink(missing_ok=True)
    create_private(fresh)
    readable = f"{copy.resolve().as_uri()}?mode=ro"
    try:
        with (
            contextlib.closing(sqlite3.connect(readable, uri=True)) as source,
            contextlib.closing(sqlite3.connect(fresh)) as target,
        ):
            source.backup(target)
    except sqlite3.Error as error:
        raise SettingsError(f"{copy} is not a database that can be read ({error}).") from None


def _bear_anew(fresh: Path, settings: Settings, now: float) -> None:
    """Check the copy, bring it up to date, and raise its floor to this moment."""
    with contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as db:
        found = db.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise SettingsError(f"The copy is damaged: {found}. Take an older one.")
        if db.execute("PRAGMA user_version").fetchone()[0] == 0:
            raise SettingsError("The copy is no gateway's database. Take one of `backup`.")
        migrate(db)
        network = db.execute("SELECT value FROM meta WHERE key = 'network'").fetchone()
        if network is not None and network[0] != settings.network:
            raise SettingsError(
                f"The copy is of network {network[0]}, GATEWAY_NETWORK is {settings.network}."
            )
        db.execute("BEGIN IMMEDIATE")
        db.execute("DELETE FROM meta WHERE key IN ('floor_block', 'born_at')")
        db.execute("INSERT INTO meta (key, value) VALUES ('born_at', ?)", (str(now),))
        db.execute("COMMIT")


def _put_aside(settings: Settings, now: float) -> Path | None:
    """Rename the database that is replaced, with its side files; it is not deleted."""
    current = _database(settings)
    if not current.exists():
        return None
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    old = current.with_name(f"gateway.db.before-restore-{stamp}")
    if old.exists():
        raise SettingsError(f"{old} exists already. Try again in a second.")
    for suffix in ("", *_SIDE_FILES):
        part = Path(f"{current}{suffix}")
        if part.exists():
            part.rename(f"{old}{suffix}")
    return old


def _database(settings: Settings) -> Path:
    return settings.data_dir / "gateway.db"
