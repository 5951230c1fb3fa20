"""Finds the copy that an operator names, fetches it, and replaces the database with it."""

import contextlib
import sqlite3
import time
from pathlib import Path

import attrs
import structlog

from gateway.errors import BackupFailed
from gateway.settings import Settings
from gateway.store.data_folder import enter_data, lock_data
from gateway_backups import records
from gateway_backups import sqlite as backup
from gateway_backups.copying import alone, newest_of, temporary, unpack
from gateway_backups.names import Copy, read_name
from gateway_backups.place import Place, place_of
from gateway_backups.records import Forgotten
from gateway_backups.settings import backup_settings_of
from gateway_operator.audit_log import Actor

_GZIP = b"\x1f\x8b"
_BLOCK_BYTES = 1024 * 1024
_log = structlog.get_logger()


@attrs.frozen(kw_only=True)
class Restored:
    """The result of a restore."""

    # The copy's name, or a file.
    copy: str

    # Where the replaced database is now; None if there was none.
    old: Path | None

    # Data in the replaced database that the copy lacks; None if unknown.
    forgotten: Forgotten | None


def restore(settings: Settings, named: str, actor: Actor, *, now: float) -> Restored:
    """Replace the database with a copy: `latest`, a copy's name, an s3:// address, or a file.

    Raises `BackupFailed` or `SettingsError`, and then leaves the database as it was.
    """
    began = time.monotonic()
    enter_data(settings)
    # Fails if a gateway is running, before anything is fetched.
    lock_data(settings).close()
    with alone(settings):
        path, at, name = _fetch(settings, named)
        # A gateway may have sold during the download. Its transfers must be refused as well.
        now += time.monotonic() - began
        forgotten = _forgotten(settings, path, at, now)
        old = backup.restore(settings, path, now=now, actor=actor, named=named)
    return Restored(copy=name, old=old, forgotten=forgotten if old is not None else None)


def restore_once(settings: Settings, *, now: float) -> None:
    """Restore GATEWAY_RESTORE, unless the database records that this was done; log the result.

    Raises the errors of `restore`.
    """
    wanted = backup_settings_of(settings).restore
    if backup.restored_by(settings) == wanted:
        _log.info("restore.already_done", copy=wanted)
        return
    actor = Actor(door="gateway", name="GATEWAY_RESTORE")
    done = restore(settings, wanted, actor, now=now)
    forgets = attrs.asdict(done.forgotten) if done.forgotten is not None else {}
    old = None if done.old is None else str(done.old)
    _log.warning("restore.done", copy=done.copy, replaced=old, **forgets)


def _fetch(settings: Settings, named: str) -> tuple[Path, float | None, str]:
    """Return the path of a readable database, its time and its name. The file may be temporary."""
    if named.startswith("file://"):
        named = named.removeprefix("file://")
    path = Path(named)
    if _is_file(path):
        return _fetch_file(settings, path)
    if named.startswith("s3:"):
        return _fetch_from_bucket(settings, named)
    if named == "latest":
        place = place_of(settings)
        return _download(settings, place, _find_latest(place).name)
    if read_name(named) is not None:
        return _download(settings, place_of(settings), named)
    # `store.backup` reports that the file does not exist.
    return path, None, named


def _is_file(path: Path) -> bool:
    """Return whether the file exists; False without permission to check."""
    try:
        return path.is_file()
    except PermissionError:
        return False


def _fetch_from_bucket(settings: Settings, address: str) -> tuple[Path, float | None, str]:
    url, _, name = address.rpartition("/")
    bucket = backup_settings_of(settings).bucket(url)
    if bucket is None or not (bucket.name and name):
        raise BackupFailed(f"{address} names no copy. Write s3://bucket/prefix/name-of-the-copy")
    if not (bucket.access_key_id and bucket.secret_access_key):
        raise BackupFailed(
            "A copy in a bucket needs its key: set GATEWAY_BACKUP_S3_ACCESS_KEY_ID and "
            "GATEWAY_BACKUP_S3_SECRET_ACCESS_KEY."
        )
    return _download(settings, Place(bucket), name)


def _fetch_file(settings: Settings, path: Path) -> tuple[Path, float | None, str]:
    parsed = read_name(path.name)
    at = parsed.at if parsed is not None else path.stat().st_mtime
    try:
        with path.open("rb") as file:
            if file.read(len(_GZIP)) != _GZIP:
                return path, at, str(path)
            file.seek(0)
            target = temporary(settings, "restore")
            pieces = iter(lambda: file.read(_BLOCK_BYTES), b"")
            unpack(pieces, target, what=f"The copy {path}", floor_bytes=_floor(settings))
    except PermissionError:
        # `store.backup` reports it.
        return path, at, str(path)
    return target, at, str(path)


def _download(settings: Settings, place: Place, name: str) -> tuple[Path, float | None, str]:
    target = temporary(settings, "restore")
    parsed = read_name(name)
    unpack(place.read(name), target, what=f"The copy {name}", floor_bytes=_floor(settings))
    return target, None if parsed is None else parsed.at, name


def _floor(settings: Settings) -> int:
    """Return the bytes that must stay free after unpacking."""
    return settings.min_free_disk_mb * 10**6


def _find_latest(place: Place) -> Copy:
    """Return the newest copy.

    Raises `BackupFailed` if the place has copies of several gateways: one of them may be an empty
    gateway that was started after the other had lost its volume.
    """
    copies = place.copies()
    origins = sorted({copy.origin for copy in copies if copy.before is None})
    newest = [copy for origin in origins if (copy := newest_of(copies, origin))]
    if len(newest) > 1:
        names = ", ".join(copy.name for copy in newest)
        raise BackupFailed(f"{place} has copies of several gateways. Name one of them: {names}")
    if not newest:
        raise BackupFailed(f"{place} has no copy.")
    return newest[0]


def _forgotten(settings: Settings, path: Path, at: float | None, now: float) -> Forgotten | None:
    """Return the data that a restore loses; None if one of the databases cannot be read."""
    live = settings.data_dir / "gateway.db"
    if at is None or not live.exists():
        return None
    try:
        with contextlib.closing(sqlite3.connect(path)) as copy:
            last_payment = records.last_payment(copy)
        with contextlib.closing(sqlite3.connect(live)) as db:
            return records.forgotten(db, last_payment, at, now)
    except sqlite3.Error:
        return None
