"""Private files, free disk space, and the errors of a full disk."""

import errno
import os
import sqlite3
from pathlib import Path

import attrs

from gateway.errors import DiskFull, SettingsError
from gateway.settings import Settings

# Independent of the umask.
FOLDER_MODE = 0o700
_FILE_MODE = 0o600
# Below this the disk counts as full, whatever the settings: SQLite's side files need space.
_MIN_BYTES = 1_000_000
# Each output takes a folder and a file, and the queue may hold a hundred tasks.
_FLOOR_INODES = 300
# The disk is low below this multiple of the floor, so the operator has time to make room.
_LOW_FLOORS = 3
_SQLITE_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
_SYSTEM_FULL = (errno.ENOSPC, errno.EDQUOT)


def private_opener(path: str, flags: int) -> int:
    """Open a file, private if this call creates it; for `open(opener=…)`."""
    return os.open(path, flags, _FILE_MODE)


def create_private(path: Path) -> None:
    """Create an empty private file; raises `FileExistsError`."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DiskState:
    """Free space on the disk with the data folder."""

    free_bytes: int
    # Sales stop below this (GATEWAY_MIN_FREE_DISK_MB).
    floor_bytes: int
    # None if the file system allocates inodes dynamically.
    free_inodes: int | None = None
    # Sales also stop below this.
    floor_inodes: int = 0
    # A database write failed on a full disk, and none has succeeded since.
    is_full: bool = False

    @property
    def is_low(self) -> bool:
        """Whether space or inodes are at or near their floor."""
        is_near = self.free_bytes < _LOW_FLOORS * self.floor_bytes
        return self.problem is not None or is_near or self.has_few_inodes

    @property
    def has_few_inodes(self) -> bool:
        """Whether free inodes are near their floor."""
        return (self.free_inodes or 0) < _LOW_FLOORS * self.floor_inodes

    @property
    def problem(self) -> str | None:
        """Why sales stopped and how to fix it; None if there is enough space."""
        free_mb, floor_mb = self.free_bytes / 10**6, self.floor_bytes / 10**6
        if self.is_full:
            return f"{DiskFull.remedy}. The database found no room for its newest write."
        if self.free_inodes is not None and self.free_inodes < self.floor_inodes:
            return (
                f"{DiskFull.remedy}. It has {self.free_inodes} inodes left for new files, and "
                f"{self.floor_inodes} are needed: delete files."
            )
        if self.free_bytes < _MIN_BYTES:
            return f"{DiskFull.remedy}. {free_mb:.1f} MB are free."
        if self.free_bytes < self.floor_bytes:
            return (
                f"The disk is nearly full: free some space. {free_mb:,.0f} MB are free, and "
                f"{floor_mb:,.0f} MB are needed (GATEWAY_MIN_FREE_DISK_MB)."
            )
        return None


def read_disk(
    settings: Settings, *, folder: Path | None = None, is_full: bool = False
) -> DiskState:
    """Return the free space of the data folder, or of `folder`.

    `is_full` is that of the store.
    """
    found = os.statvfs(folder or settings.data_dir)
    return DiskState(
        free_bytes=found.f_bavail * found.f_frsize,
        floor_bytes=settings.min_free_disk_mb * 10**6,
        # btrfs and FAT have no fixed number of inodes and report 0.
        free_inodes=found.f_favail if found.f_files else None,
        # A small volume may have few inodes.
        floor_inodes=min(_FLOOR_INODES, found.f_files // 2),
        is_full=is_full,
    )


def means_full(error: object) -> bool:
    """Whether an error of SQLite or the system means that the disk is full."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) in _SQLITE_FULL
    return isinstance(error, OSError) and error.errno in _SYSTEM_FULL


def full_disk(folder: Path, error: object) -> SettingsError | None:
    """Return the error to raise if a full disk caused `error`, else None.

    Without space for its side files, SQLite only reports that it cannot open the database.
    """
    if means_full(error) or (isinstance(error, sqlite3.OperationalError) and _has_no_room(folder)):
        return SettingsError(f"{DiskFull.remedy}. The folder {folder} is on it.")
    return None


def _has_no_room(folder: Path) -> bool:
    found = os.statvfs(folder)
    has_inodes = found.f_favail > 0 or not found.f_files
    return found.f_bavail * found.f_frsize < _MIN_BYTES or not has_inodes


# SQLite keeps freed pages in its file and never shrinks its write-ahead log. A volume filled by
# requests would stay full after they are deleted.
# SQLite checkpoints the write-ahead log at about this size.
MAX_WAL_BYTES = 4_000_000
# Kept for the next writes: about 1 MB.
_FREE_PAGES_KEPT = 256
# About 4 MB per step, so that other writes do not wait long.
_PAGES_AT_ONCE = 1_000
# The value of auto_vacuum = INCREMENTAL.
_INCREMENTAL = 2
_BUSY_MS = 100


def cut_free_pages(db: sqlite3.Connection) -> int:
    """Truncate some free pages at the end of the file. Returns how many, 0 when done.

    Call this outside a transaction. `executescript` runs the pragma to its end; `execute` would
    stop after one page.
    """
    free: int = db.execute("PRAGMA freelist_count").fetchone()[0]
    if free <= _FREE_PAGES_KEPT or db.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL:
        return 0
    pages = min(free - _FREE_PAGES_KEPT, _PAGES_AT_ONCE)
    db.executescript(f"PRAGMA incremental_vacuum({pages})")
    return pages


def wal_bytes(path: Path) -> int:
    """Return the size of the write-ahead log, or 0 if it does not exist."""
    wal = path.with_name(path.name + "-wal")
    return wal.stat().st_size if wal.exists() else 0


def empty_wal(db: sqlite3.Connection) -> None:
    """Checkpoint and truncate the write-ahead log, unless a reader blocks it."""
    db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute("PRAGMA busy_timeout = 5000")
