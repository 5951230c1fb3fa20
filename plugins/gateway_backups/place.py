"""The place of the copies: a prefix of a bucket, or a folder, through obstore.

Everything here blocks, so it runs in a thread.
"""

import contextlib
import importlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from gateway.errors import BackupFailed
from gateway.settings import Settings
from gateway_backups.names import Copy, read_name
from gateway_backups.settings import backup_settings_of
from gateway_bucket.outputs import load_obstore, reason_of
from gateway_bucket.settings import Bucket

# S3 accepts parts from 5 MiB on. Two are uploaded at once, so an upload takes about 20 MB.
_PART_BYTES = 5 * 1024 * 1024
_PARTS_AT_ONCE = 2
# A request may take a minute at most, so a download is split into ranges.
_PIECE_BYTES = 4 * 1024 * 1024


@attrs.define
class Place:
    """The copies in one bucket or folder. obstore is imported on first use."""

    _where: Bucket | Path
    _obstore: Any = attrs.field(default=None, init=False)
    _store: Any = attrs.field(default=None, init=False)

    def __str__(self) -> str:
        if isinstance(self._where, Path):
            return str(self._where)
        prefix = f"/{self._where.prefix}" if self._where.prefix else ""
        return f"s3://{self._where.name}{prefix}"

    def copies(self) -> list[Copy]:
        """Return the copies here, newest first. Other files are ignored."""
        with self._open("list copies") as (obstore, store):
            listed = obstore.list_with_delimiter(store, prefix=self._prefix or None)["objects"]
        found = (read_name(one["path"].rpartition("/")[2], one["size"]) for one in listed)
        return sorted((copy for copy in found if copy), key=lambda copy: copy.at, reverse=True)

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        """Write an object in parts; it appears when it is complete, or not at all."""
        with self._open("take a copy") as (obstore, store):
            obstore.put(
                store,
                self._path(name),
                pieces,
                chunk_size=_PART_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
            )

    def size_of(self, name: str) -> int:
        """Return an object's size in bytes."""
        with self._open("find the copy") as (obstore, store):
            return int(obstore.head(store, self._path(name))["size"])

    def read(self, name: str) -> Iterator[bytes]:
        """Yield an object's bytes in pieces."""
        size = self.size_of(name)
        for start in range(0, size, _PIECE_BYTES):
            end = min(start + _PIECE_BYTES, size)
            with self._open("give the copy back") as (obstore, store):
                piece = obstore.get_range(store, self._path(name), start=start, end=end)
            yield bytes(piece)

    def delete(self, name: str) -> None:
        """Delete an object. A missing one is no error."""
        with (
            self._open("delete old copies") as (obstore, store),
            contextlib.suppress(FileNotFoundError),
        ):
            obstore.delete(store, self._path(name))

    def probe(self) -> list[Copy]:
        """Write, read and delete a small object, and return the copies, newest first.

        Raises `BackupFailed` if the key lacks one of these rights.
        """
        name = f"gateway-check-{secrets.token_hex(8)}"
        self.put(name, iter([b"check"]))
        data = b"".join(self.read(name))
        self.delete(name)
        if data != b"check":
            raise BackupFailed(f"{self} returns other bytes than it got.")
        return self.copies()

    @property
    def _prefix(self) -> str:
        return "" if isinstance(self._where, Path) else self._where.prefix

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    @contextlib.contextmanager
    def _open(self, doing: str) -> Iterator[tuple[Any, Any]]:
        """Yield (obstore, its store). Its errors become `BackupFailed`, with no secret in them."""
        kind = "folder" if isinstance(self._where, Path) else "bucket"
        try:
            if self._store is None:
                self._obstore, self._store = _load(self._where)
            yield self._obstore, self._store
        except BackupFailed:
            raise
        except Exception as error:
            base = getattr(getattr(self._obstore, "exceptions", None), "BaseError", OSError)
            if not isinstance(error, (base, OSError, ValueError)):
                raise
            raise BackupFailed(f"The {kind} {self} cannot {doing}: {reason_of(error)}.") from None


def place_of(settings: Settings) -> Place:
    """Return the place in the settings; raises `BackupFailed` if they name none."""
    chosen = backup_settings_of(settings)
    where = chosen.bucket() or chosen.folder()
    if where is None:
        raise BackupFailed(
            "GATEWAY_BACKUP_URL is not set, so copies go nowhere. Name a private bucket, such as "
            "GATEWAY_BACKUP_URL=s3://my-backups/gateway, or a file: gateway backup FILE"
        )
    return Place(where)


def _load(where: Bucket | Path) -> tuple[Any, Any]:
    if isinstance(where, Bucket):
        return load_obstore(where)
    obstore = importlib.import_module("obstore")
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    return obstore, importlib.import_module("obstore.store").LocalStore(where)
