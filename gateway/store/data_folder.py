"""The data folder: ownership, modes, lock, and the database in it or of a plugin."""

import contextlib
import fcntl
import os
import pwd
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from gateway.errors import SettingsError
from gateway.installed import load_opener
from gateway.settings import Settings
from gateway.store.disk import FOLDER_MODE, full_disk, private_opener
from gateway.store.sql_store import SqlStore
from gateway.store.sqlite.store import SqliteStore

_OTHERS = 0o077
# Prefix of all databases and their side files (-wal, -shm), including those that a restore put
# aside.
_DATABASES = "gateway.db"
LOCK = "gateway.lock"
# Seconds to wait for the lock.
_LOCK_PATIENCE_S = 1.0
_OUTPUTS = "outputs"


def enter_data(settings: Settings) -> None:
    """Make the data folder private, after switching from root to its owner.

    Call this before opening anything in the folder. If root opened the database, SQLite would
    create side files that the gateway's own user cannot write.

    Raises `SettingsError` if this process cannot switch to that user or cannot enter the folder.
    """
    os.umask(0o077)
    try:
        _enter_folder(settings.data_dir)
    except OSError as error:
        raise SettingsError(
            f"Cannot open the folder {settings.data_dir} ({error.strerror}). Run this as the "
            "folder's owner, or set another folder: GATEWAY_DATA_DIR=./data"
        ) from None


def _enter_folder(folder: Path) -> None:
    if not folder.is_dir():
        return
    owner = folder.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        _become_user(owner.st_uid, owner.st_gid, folder)
    make_private(folder)


def _become_user(user: int, group: int, folder: Path) -> None:
    """Drop root privileges, after giving away the files that root left."""
    try:
        known = pwd.getpwuid(user)
        groups = os.getgrouplist(known.pw_name, known.pw_gid)
        group = known.pw_gid
    except KeyError:
        # In many containers the user is a number without a name.
        groups = [group]
    try:
        _give_to(folder, user, group)
        os.setgroups(groups)
        os.setgid(group)
        os.setuid(user)
    except OSError as error:
        raise SettingsError(
            f"This runs as root, but {folder} belongs to user {user}, and root cannot switch to "
            f"that user here ({error.strerror}). Run it as that user: "
            f"setpriv --reuid={user} --regid={group} --clear-groups gateway …"
        ) from None
    # The rest of this process, and its child processes, must import code as that user.
    if not (os.access(sys.executable, os.X_OK) and os.access(__file__, os.R_OK)):
        raise SettingsError(
            f"{folder} belongs to user {user}, so this switched to that user, who may not run "
            f"{sys.executable} or read {Path(__file__).parents[1]}. Install the gateway where that "
            f"user can run it. To run it as root instead: chown -R root {folder}"
        )


def make_private(folder: Path) -> None:
    """Revoke other users' access to the data folder's files.

    The outputs folder is skipped if it is already private: then nothing below it is readable. Files
    of another user are left alone, and so is a folder that all users share (such as /tmp).
    """
    if folder.stat().st_mode & stat.S_ISVTX:
        return
    _make_one_private(folder)
    for path in _our_files(folder):
        if path.name != _OUTPUTS:
            _make_one_private(path)
        elif _is_open(path):
            _make_one_private(path)
            for below in _walk(path):
                _make_one_private(below)


def _our_files(folder: Path) -> Iterator[Path]:
    """Yield the gateway's own files in its data folder: databases, the lock, the outputs folder."""
    for name in _our_names(folder):
        yield folder / name


def _give_to(folder: Path, user: int, group: int) -> None:
    """Give the files that root left in the data folder to the folder's owner; only root can.

    Symbolic links are not followed, and a file with a second hard link keeps its owner: the
    folder's owner may have created either of them. Each file is accessed by name relative to an
    open folder, never by path: that user could put a symbolic link into a path at any moment.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in _our_names(opened):
            with contextlib.suppress(FileNotFoundError):
                _give_one(name, opened, user, group)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for _, folders, files, within in os.fwalk(_OUTPUTS, dir_fd=opened):
                for name in (*folders, *files):
                    with contextlib.suppress(FileNotFoundError):
                        _give_one(name, within, user, group)
    finally:
        os.close(opened)


def _give_one(name: str, folder: int, user: int, group: int) -> None:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    is_plain = stat.S_ISDIR(found.st_mode) or found.st_nlink == 1
    if found.st_uid == 0 and is_plain:
        os.chown(name, user, group, dir_fd=folder, follow_symlinks=False)


def _our_names(folder: Path | int) -> list[str]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    return [n for n in names if n in (LOCK, _OUTPUTS) or n.startswith(_DATABASES)]


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))


def _is_open(path: Path) -> bool:
    return bool(path.lstat().st_mode & _OTHERS)


def _make_one_private(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        is_ours = found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode)
        if is_ours and found.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def existing_database(settings: Settings) -> Path:
    """Return the path of the SQLite database; raises `SettingsError` if there is none."""
    path = settings.data_dir / "gateway.db"
    if not path.exists():
        if settings.database_url:
            raise SettingsError(
                "The data is in PostgreSQL (GATEWAY_DATABASE_URL); this command is for SQLite only."
            )
        raise SettingsError(
            f"There is no database in {settings.data_dir}. Set the gateway's folder: "
            "GATEWAY_DATA_DIR=/data"
        )
    return path


def open_store(settings: Settings, *, name: str | None = None) -> SqlStore:
    """Return the store for these settings, not opened yet.

    `name` identifies this process to the database's server. By default it is the node's name, which
    also marks the node's leases.

    Raises `SettingsError` if no plugin opens the database.
    """
    url = settings.database_url
    if not url:
        return SqliteStore(settings.data_dir / "gateway.db")
    open_shared = load_opener(
        "gateway.stores", "GATEWAY_DATABASE_URL", url, settings.plugins_disabled
    )
    store: SqlStore = open_shared(settings, name)
    return store


def lock_data(settings: Settings) -> TextIO:
    """Lock the folder until the returned file is closed or this process ends.

    A second gateway would treat the running gateway's tasks as abandoned. Raises `SettingsError` if
    another gateway holds the lock, or the folder is not writable.
    """
    try:
        settings.data_dir.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        # Not "w": the running gateway's note is kept unless this takes the lock.
        lock = open(settings.data_dir / LOCK, "a", opener=private_opener)  # noqa: SIM115 - Path.open takes no opener; the caller closes it
    except OSError as error:
        raise full_disk(settings.data_dir, error) or SettingsError(
            f"Cannot write to the folder {settings.data_dir} ({error.strerror}). "
            "Set another folder: GATEWAY_DATA_DIR=/data"
        ) from None
    if not _take_lock(lock):
        lock.close()
        raise SettingsError(
            f"Another gateway uses {settings.data_dir}. Stop it, or set another folder for this "
            "one: GATEWAY_DATA_DIR=/data2. Processes that share a wallet also share a PostgreSQL, "
            "GATEWAY_DATABASE_URL."
        )
    # The note of a process that has ended.
    lock.truncate(0)
    return lock


def _take_lock(lock: TextIO) -> bool:
    """Lock a file; return whether it could be locked.

    A child that a killed gateway was starting holds its lock until the child has started, too.
    """
    deadline = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True


async def check_network(settings: Settings, store: SqlStore) -> None:
    """Refuse data from another network: its nonces and claims are not valid on this one."""
    known = await store.meta("network", lambda: settings.network)
    if known != settings.network:
        raise SettingsError(
            f"The data in {settings.data_dir} belongs to network {known}, but GATEWAY_NETWORK is "
            f"{settings.network}. Set a separate folder for this network: GATEWAY_DATA_DIR=/data2"
        )
