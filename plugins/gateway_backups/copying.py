"""Makes a copy: `VACUUM INTO` a file beside the database, compressed while it is uploaded.

Everything here blocks, so it runs in a thread with its own connection. The gateway keeps writing.
"""

import contextlib
import fcntl
import os
import shutil
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import attrs

from gateway.errors import BackupFailed, SettingsError
from gateway.settings import Settings
from gateway.store.disk import private_opener
from gateway.store.sqlite import upgrade
from gateway_backups import records
from gateway_backups.names import Copy, make_name, names_to_keep, origin_of
from gateway_backups.place import Place

# The names begin like the database's, so that a start makes the files private and gives them to the
# folder's owner.
_LOCK = "gateway.db.backups-lock"
_TEMPORARY = "gateway.db.copying-"
_BLOCK_BYTES = 1024 * 1024
# zlib's default level, and its option for a gzip header.
_LEVEL, _GZIP = 6, 31
# Copying runs at low priority, so that sales come first. Linux takes a thread's number here.
_NICENESS = 10


@attrs.frozen(kw_only=True)
class Made:
    """A finished copy."""

    name: str
    size_bytes: int

    # The id of the newest payment in it.
    last_payment: int


@contextlib.contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """Hold the lock for a copy or a drill, and remove temporary files before and after.

    Raises `BackupFailed` if it is taken, by this process or another.
    """
    with open(settings.data_dir / _LOCK, "w", opener=private_opener) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BackupFailed("Another copy or drill runs. Try again when it has ended.") from None
        _remove_temporary(settings)
        try:
            yield
        finally:
            _remove_temporary(settings)


def temporary(settings: Settings, name: str) -> Path:
    """Return the path of a file that `alone` removes at the end."""
    return settings.data_dir / f"{_TEMPORARY}{name}"


def read_origin(settings: Settings) -> str:
    """Return the origin in the names of this installation's copies.

    Raises `BackupFailed` if the database has no secret yet.
    """
    with _open(settings) as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'file_secret'").fetchone()
    if row is None:
        raise BackupFailed("The database is empty: start this gateway once first.")
    return origin_of(row[0])


def make_copy(settings: Settings, place: Place, now: float) -> Made:
    """Write a copy of the database to its place.

    Raises `BackupFailed`, and then leaves no partial copy there.
    """
    _yield_processor()
    name = make_name(read_origin(settings), now)
    with alone(settings):
        path = temporary(settings, "live")
        last_payment = _vacuum(settings, path)
        return Made(name=name, size_bytes=_send(place, name, path), last_payment=last_payment)


def send_kept(settings: Settings, place: Place) -> str | None:
    """Upload the newest `gateway.db.before-<n>`, unless it is there already."""
    kept = _newest_before(settings)
    if kept is None:
        return None
    path, before = kept
    name = make_name(read_origin(settings), path.stat().st_mtime, before)
    if name in {copy.name for copy in place.copies()}:
        return None
    _send(place, name, path)
    return name


def thin_out(settings: Settings, place: Place) -> list[str]:
    """Delete this gateway's expired copies and return their names.

    Copies of other gateways and other files stay.
    """
    origin = read_origin(settings)
    ours = [copy for copy in place.copies() if copy.origin == origin]
    kept = names_to_keep(ours)
    gone = [copy.name for copy in ours if copy.name not in kept]
    for name in gone:
        place.delete(name)
    return gone


def newest_of(copies: list[Copy], origin: str | None) -> Copy | None:
    """Return the newest scheduled copy, of one gateway or of all."""
    fitting = [c for c in copies if c.before is None and origin in (None, c.origin)]
    return max(fitting, key=lambda copy: copy.at, default=None)


def check_room(settings: Settings, what: str) -> None:
    """Raise `BackupFailed` if a copy beside the database leaves too little disk for sales."""
    floor_bytes = settings.min_free_disk_mb * 10**6
    try:
        upgrade.check_room(settings.data_dir / "gateway.db", what=what, floor_bytes=floor_bytes)
    except SettingsError as error:
        raise BackupFailed(str(error)) from None


def _vacuum(settings: Settings, target: Path) -> int:
    """Write a consistent copy to a file and return the id of its newest payment."""
    check_room(settings, "A backup copies the database beside it first")
    try:
        with _open(settings) as db:
            upgrade.write_copy(db, target)
        with contextlib.closing(sqlite3.connect(target)) as copy:
            return records.last_payment(copy)
    except (OSError, sqlite3.Error) as error:
        raise BackupFailed(f"The database cannot be copied to {target.parent}: {error}.") from None


def _send(place: Place, name: str, path: Path) -> int:
    """Compress a file while it is uploaded, and return the compressed size in bytes."""
    pieces = _Compressed(path)
    place.put(name, iter(pieces))
    found = place.size_of(name)
    if found != pieces.size_bytes:
        place.delete(name)
        raise BackupFailed(
            f"Of the copy {name} {pieces.size_bytes:,} bytes were sent, but {place} has {found:,}."
        )
    return found


@attrs.define
class _Compressed:
    """Yields a file's bytes as gzip, and counts the bytes yielded."""

    _path: Path
    size_bytes: int = attrs.field(default=0, init=False)

    def __iter__(self) -> Iterator[bytes]:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        with self._path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield from self._count(packer.compress(block))
        yield from self._count(packer.flush())

    def _count(self, piece: bytes) -> Iterator[bytes]:
        self.size_bytes += len(piece)
        if piece:
            yield piece


def unpack(pieces: Iterator[bytes], target: Path, *, what: str, floor_bytes: int) -> None:
    """Unpack gzip pieces to a new private file.

    Raises `BackupFailed` for a damaged copy, and if the disk would go below `floor_bytes`.
    """
    unpacker = zlib.decompressobj(_GZIP)
    target.unlink(missing_ok=True)
    try:
        with open(target, "wb", opener=private_opener) as file:
            for piece in pieces:
                waiting = piece
                while waiting and not unpacker.eof:
                    file.write(unpacker.decompress(waiting, _BLOCK_BYTES))
                    waiting = unpacker.unconsumed_tail
                    # A piece may unpack to a thousand times its size.
                    if shutil.disk_usage(target.parent).free < floor_bytes:
                        raise BackupFailed(f"{what} does not fit on the disk of {target.parent}.")
            file.write(unpacker.flush())
    except zlib.error:
        raise BackupFailed(f"{what} is damaged. Take an older one.") from None
    except OSError as error:
        raise BackupFailed(f"{what} cannot be written to {target.parent}: {error}.") from None
    if not unpacker.eof:
        raise BackupFailed(f"{what} is cut off. Take an older one.")


@contextlib.contextmanager
def _open(settings: Settings) -> Iterator[sqlite3.Connection]:
    """Open the live database for one copy. A reader blocks no write."""
    path = settings.data_dir / "gateway.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        yield db


def _newest_before(settings: Settings) -> tuple[Path, int] | None:
    """Return the newest copy from before a migration, and the schema version it was made before."""
    found = [
        (path.stat().st_mtime, path, int(number))
        for path in settings.data_dir.glob("gateway.db.before-*")
        if (number := path.name.rpartition("-")[2]).isdecimal()
        and path.name == f"gateway.db.before-{number}"
    ]
    _, path, before = max(found, default=(0.0, None, 0))
    return None if path is None else (path, before)


def _remove_temporary(settings: Settings) -> None:
    for path in settings.data_dir.glob(f"{_TEMPORARY}*"):
        path.unlink(missing_ok=True)


def _yield_processor() -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
