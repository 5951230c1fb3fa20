"""What was signed for whom, on the disk before it is sent.

One file a purchase, named by its address and its Idempotency-Key. A purchase that lost its answer
goes on with the file's payment, so no purchase is signed twice.
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

from gateway_buyer.errors import NotBought, Unfinished


@attrs.frozen(kw_only=True)
class Record:
    """A purchase that is signed."""

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
    """Unix seconds; the payment cannot be used after them."""
    task_id: str | None = None


def hash_request(body: Mapping[str, Any]) -> str:
    """Return the hash by which two requests are compared."""
    written = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()


def default_folder() -> Path:
    """Return the user's folder for what a program must remember (XDG base directories)."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    base = given if given.is_absolute() else Path.home() / ".local" / "state"
    return base / "generation-gateway" / "purchases"


@attrs.frozen
class Records:
    """The folder with all records."""

    folder: Path

    def find(self, url: str, key: str) -> Record | None:
        """Return the record of a purchase; None where nothing was signed.

        Raises `Unfinished` for a file that cannot be read: it may hold a payment.
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
        """Write a new record durably; raises `NotBought` where that fails."""
        path = self._path(record.url, record.key)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._written(record) as temporary:
                # This fails where the name is taken: of two runs with one key one signs.
                os.link(temporary, path)
                self._sync_folder()
        except FileExistsError:
            raise NotBought(
                "Another run of this command signs the same purchase. Run it again to continue."
            ) from None
        except OSError as error:
            raise NotBought(
                f"Nothing was paid: {self.folder} cannot be written ({error.strerror}), where a "
                "payment is noted before it is sent. XDG_STATE_HOME names another folder."
            ) from None

    def note_task(self, record: Record, task_id: str) -> Record:
        """Write down which task was bought, and return the record; raises `Unfinished`."""
        noted = attrs.evolve(record, task_id=task_id)
        try:
            with self._written(noted) as temporary:
                temporary.replace(self._path(record.url, record.key))
        except OSError as error:
            raise Unfinished(f"{self.folder} cannot be written ({error.strerror}).") from None
        return noted

    @contextlib.contextmanager
    def _written(self, record: Record) -> Iterator[Path]:
        """Yield a private file with the record, on the disk; it is deleted if it is still there."""
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
