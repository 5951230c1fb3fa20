"""Copies the database while the gateway runs, and restores a copy.

A copy lacks the payments made after it, so their transfers could pay a second time. A restored
database therefore gets a new creation time, and the gateway refuses every transfer that was mined
before it.
"""

import contextlib
import itertools
import os
import shutil
import sqlite3
import time
from pathlib import Path

from gateway.errors import SettingsError
from gateway.settings import Settings
from gateway.store.data_folder import enter_data, existing_database, lock_data
from gateway.store.disk import create_private, full_disk, means_full
from gateway.store.sqlite.migrations import migrate, refuse_migrated
from gateway_backups.settings import backup_settings_of
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.sql import actions

_SIDE_FILES = ("-wal", "-shm", "-journal")


def back_up(settings: Settings, target: Path) -> int:
    """Write a consistent copy of the database to a new file and return its size in bytes.

    Raises `SettingsError` if the file exists or cannot be written.
    """
    enter_data(settings)
    source = existing_database(settings)
    try:
        create_private(target)
    except FileExistsError:
        raise SettingsError(f"{target} exists already. Name a new file.") from None
    except OSError as error:
        if means_full(error):
            raise SettingsError(_no_room(target, error)) from None
        raise SettingsError(
            f"The copy {target} cannot be written ({error.strerror}). Name a file where the owner "
            f"of {settings.data_dir} may write, such as {settings.data_dir / 'copy.db'}."
        ) from None
    try:
        with contextlib.closing(sqlite3.connect(source)) as db:
            db.execute("VACUUM INTO ?", (str(target),))
    except sqlite3.Error as error:
        target.unlink()
        raise SettingsError(_no_room(target, error)) from None
    return target.stat().st_size


def _no_room(target: Path, error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) else error
    return f"The copy {target} cannot be written ({why}). Name a file on a disk with more room."


def restore(
    settings: Settings,
    copy: Path,
    *,
    now: float,
    actor: Actor | None = None,
    named: str | None = None,
) -> Path | None:
    """Replace the database with a copy; returns the new path of the replaced one, if any.

    `actor` restores the copy `named`; both go into the restored database's audit log. Raises
    `SettingsError` if a gateway is running on the folder, if its database was migrated elsewhere,
    or if the copy is not a database of this network.
    """
    enter_data(settings)
    lock = lock_data(settings)
    try:
        _refuse_migrated(_database(settings))
        fresh = settings.data_dir / "gateway.db.restoring"
        try:
            _copy_database(copy, fresh)
            _prepare(settings, fresh, now)
            if actor is not None and named is not None:
                _note_restore(fresh, actor, named, now)
            return _put_in_place(settings, fresh, now)
        finally:
            _remove(fresh)
    finally:
        lock.close()


def restored_by(settings: Settings) -> str | None:
    """Return the value of GATEWAY_RESTORE that was restored; None if there is none."""
    path = _database(settings)
    if not path.exists():
        return None
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'restored_by'").fetchone()
        return None if row is None else str(row[0])
    return None


def forget_restored_by(settings: Settings) -> None:
    """Let GATEWAY_RESTORE restore the same copy again: the operator has unset it."""
    if restored_by(settings) is not None:
        with contextlib.closing(sqlite3.connect(_database(settings))) as db, db:
            db.execute("DELETE FROM meta WHERE key = 'restored_by'")


def _refuse_migrated(current: Path) -> None:
    """Refuse to replace a database that was migrated to another one: both would sell."""
    # A damaged one may be replaced: it has no readable notes.
    with contextlib.suppress(sqlite3.Error):
        if current.exists():
            with contextlib.closing(sqlite3.connect(current)) as db:
                refuse_migrated(db)


def _prepare(settings: Settings, fresh: Path, now: float) -> None:
    """Make a copy fit to be the gateway's database; raises `SettingsError` if it cannot be."""
    with contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as db:
        check_copy(db, settings)
        # Only this file is moved into place, so nothing may be left in a write-ahead log.
        if db.execute("PRAGMA journal_mode = DELETE").fetchone()[0] != "delete":
            raise SettingsError("Another program is reading the copy. Try again later.")
        db.execute("BEGIN IMMEDIATE")
        _set_creation_time(db, now)
        _set_restored_by(db, backup_settings_of(settings).restore)
        _end_access(db, now)
        db.execute("COMMIT")


def _set_creation_time(db: sqlite3.Connection, now: float) -> None:
    """Set the creation time to now, and forget the cutoff block of the earlier one."""
    db.execute("DELETE FROM meta WHERE key IN ('floor_block', 'born_at')")
    db.execute("INSERT INTO meta (key, value) VALUES ('born_at', ?)", (str(now),))


def _set_restored_by(db: sqlite3.Connection, words: str) -> None:
    """Record GATEWAY_RESTORE, also after a manual restore.

    Otherwise the next start would replace the copy chosen by hand with the one that it names.
    """
    db.execute("DELETE FROM meta WHERE key = 'restored_by'")
    if words:
        db.execute("INSERT INTO meta (key, value) VALUES ('restored_by', ?)", (words,))


def _end_access(db: sqlite3.Connection, now: float) -> None:
    """End sessions and revoke tokens: the copy does not know which have ended since."""
    db.execute("UPDATE operator_sessions SET ended_at = ? WHERE ended_at IS NULL", (now,))
    db.execute("UPDATE operator_tokens SET revoked_at = ? WHERE revoked_at IS NULL", (now,))


def _note_restore(fresh: Path, actor: Actor, named: str, now: float) -> None:
    action = NewAction(actor=actor, at=now, action="database.restore", subject=named)
    with contextlib.closing(sqlite3.connect(fresh)) as db, db:
        actions.insert(db, action)


def _copy_database(copy: Path, fresh: Path) -> None:
    if not os.access(copy, os.R_OK):
        raise SettingsError(
            f"There is no file {copy}, or the owner of {fresh.parent} may not read it. Put "
            "it there, and give it to that owner (chown)."
        )
    _remove(fresh)
    create_private(fresh)
    readable = f"{copy.resolve().as_uri()}?mode=ro"
    try:
        with (
            contextlib.closing(sqlite3.connect(readable, uri=True)) as source,
            contextlib.closing(sqlite3.connect(fresh)) as target,
        ):
            source.backup(target)
    except sqlite3.Error as error:
        raise full_disk(fresh.parent, error) or SettingsError(
            f"{copy} is not a readable database ({error}). Name a copy that `gateway backup` wrote."
        ) from None


def check_copy(db: sqlite3.Connection, settings: Settings) -> None:
    """Check a copy and migrate it.

    Raises `SettingsError` for a copy that must not be used.
    """
    found = db.execute("PRAGMA integrity_check").fetchone()[0]
    if found != "ok":
        raise SettingsError(f"The copy is damaged: {found}. Take an older one.")
    if db.execute("PRAGMA user_version").fetchone()[0] == 0:
        raise SettingsError(
            "The copy is not a gateway's database. Name a copy that `gateway backup` wrote."
        )
    migrate(db)
    network = db.execute("SELECT value FROM meta WHERE key = 'network'").fetchone()
    if network is not None and network[0] != settings.network:
        raise SettingsError(
            f"The copy is of network {network[0]}, but GATEWAY_NETWORK is {settings.network}. "
            "Take a copy of this network, or set GATEWAY_NETWORK to the copy's."
        )


def _put_in_place(settings: Settings, fresh: Path, now: float) -> Path | None:
    """Move a file to the database's place; returns the new path of the replaced one.

    If this is killed at any point, the replaced database is complete under one of its names. Its
    side files never lie beside another database: SQLite would apply them to it.
    """
    current = _database(settings)
    side_files = [path for suffix in _SIDE_FILES if (path := Path(f"{current}{suffix}")).exists()]
    old = _keep(current, side_files, now) if current.exists() else None
    if side_files:
        current.unlink(missing_ok=True)
        for path in side_files:
            path.unlink()
    fresh.replace(current)
    return old


def _keep(current: Path, side_files: list[Path], now: float) -> Path:
    """Hard-link the database and its side files to a second name."""
    stamps = (time.strftime("%Y%m%d-%H%M%S", time.gmtime(now + more)) for more in itertools.count())
    names = (current.with_name(f"gateway.db.before-restore-{stamp}") for stamp in stamps)
    old = next(name for name in names if not name.exists())
    for path in (*side_files, current):
        kept = path.with_name(path.name.replace(current.name, old.name, 1))
        kept.unlink(missing_ok=True)
        try:
            os.link(path, kept)
        except OSError:
            # Some network folders have no hard links.
            shutil.copyfile(path, kept)
    return old


def _remove(path: Path) -> None:
    """Remove a database that is not in use, with its side files."""
    for suffix in ("", *_SIDE_FILES):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _database(settings: Settings) -> Path:
    return settings.data_dir / "gateway.db"
