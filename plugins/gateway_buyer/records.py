"""Signed purchases, stored on disk before they are sent.

There is one file per purchase, named by its URL and Idempotency-Key. If a response is lost, the
purchase continues with the stored payment and is never signed twice.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import cattrs

from gateway_buyer.errors import AlreadySigned, NotBought, Unfinished


@attrs.frozen(kw_only=True)
class Record:
    """A signed purchase."""

    url: str
    slug: str
    key: str
    """The Idempotency-Key."""
    request: str
    """SHA-256 of the request's body, in hex."""
    payment: str = attrs.field(repr=False)
    """The value of `PAYMENT-SIGNATURE`."""
    price_units: int
    payee: str
    network: str
    valid_before: int
    """Unix seconds. The payment expires then."""
    task_id: str | None = None


def hash_request(body: Mapping[str, Any]) -> str:
    """Return the hash by which two requests are compared."""
    written = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()


def state_folder() -> Path:
    """Return the user's folder for state (XDG base directories)."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    base = given if given.is_absolute() else Path.home() / ".local" / "state"
    return base / "generation-gateway"


def default_folder() -> Path:
    """Return the folder with the user's purchases."""
    return state_folder() / "purchases"


@attrs.frozen
class Records:
    """The folder with all records."""

    folder: Path

    def find(self, url: str, key: str) -> Record | None:
        """Return the record of a purchase; None if nothing was signed.

        Raises `Unfinished` for an unreadable file: it may contain a payment.
        """
        path = self._path(url, key)
        try:
            return cattrs.structure(json.loads(path.read_bytes()), Record)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, cattrs.BaseValidationError) as error:
            raise Unfinished(
                f"{path} is the record of this purchase and cannot be read "
                f"({type(error).__name__}). Wait ten minutes, until its payment has expired; then "
                "delete it."
            ) from None

    def add(self, record: Record) -> None:
        """Write a new record durably; raises `NotBought` if that fails."""
        path = self._path(record.url, record.key)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._written(record) as temporary:
                # This fails if the name is taken, so only one of two runs with the same key signs.
                os.link(temporary, path)
                self._sync_folder()
        except FileExistsError:
            raise AlreadySigned(
                "Another run of this command signs the same purchase. Run it again to continue."
            ) from None
        except OSError as error:
            raise NotBought(
                f"Nothing was paid: {self.folder} cannot be written ({error.strerror}), and a "
                "payment is stored there before it is sent. XDG_STATE_HOME names another folder."
            ) from None

    def note_task(self, record: Record, task_id: str) -> Record:
        """Store the id of the task that was bought, and return the record; raises `Unfinished`."""
        noted = attrs.evolve(record, task_id=task_id)
        try:
            with self._written(noted) as temporary:
                temporary.replace(self._path(record.url, record.key))
        except OSError as error:
            raise Unfinished(f"{self.folder} cannot be written ({error.strerror}).") from None
        return noted

    @contextlib.contextmanager
    def _written(self, record: Record) -> Iterator[Path]:
        """Yield a private, synced file with the record; it is deleted if it still exists."""
        opened, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
        temporary = Path(name)
        try:
            with os.fdopen(opened, "w", encoding="utf-8") as file:
                json.dump(attrs.asdict(record), file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def _sync_folder(self) -> None:
        opened = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

    def _path(self, url: str, key: str) -> Path:
        name = hashlib.sha256(f"{url}\n{key}".encode()).hexdigest()[:32]
        return self.folder / f"{name}.json"
