"""Outputs on the local disk, stored durably with their hashes, served by signed links."""

import asyncio
import contextlib
import functools
import hashlib
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from itsdangerous import BadSignature, Signer

from gateway.contracts.outputs import OutputStoreUnavailable, StoredFile
from gateway.domain import Output, Result, StoredOutput, StoredResult
from gateway.errors import NotFound
from gateway.outputs.keys import MediaTypes, is_ours, outputs_of, task_of
from gateway.store.disk import FOLDER_MODE, private_opener

# A link is valid for at least this time after the poll that returned it.
_LINK_S = 3600
# They take 300 KB.
_KEPT_SIGNATURES = 1024
# In the key of an output that another store keeps, such as a bucket.
_SCHEME = ":"
# Folders per page of a listing.
_BATCH = 100


class DiskOutputs:
    """Outputs in one folder, with a subfolder per lease. Implements `contracts.OutputStore`."""

    def __init__(self, folder: Path, secret: str, types: MediaTypes | None = None) -> None:
        self._folder = folder
        self.types = types or MediaTypes()
        # Whether the folder itself is known to survive a power cut.
        self._is_rooted = False
        self._signer = Signer(secret, salt="files", digest_method=hashlib.sha256)
        # Each poll of a finished task returns the same links for an hour.
        self._sign = functools.lru_cache(maxsize=_KEPT_SIGNATURES)(self._signer.get_signature)

    async def save(self, folder: str, result: Result) -> StoredResult:
        """Store outputs durably with their hashes; text becomes a separate output."""
        with _translate_errors("take outputs"):
            stored = await asyncio.to_thread(self._write_all, folder, outputs_of(result))
        return StoredResult(outputs=tuple(stored), text=result.text)

    def _write_all(self, folder: str, outputs: Sequence[Output]) -> list[StoredOutput]:
        """Write files so that after a power cut each is either complete or absent.

        Their names are durable only when this returns.
        """
        path = self._folder / folder
        self._make_folder(path)
        stored = []
        for number, output in enumerate(outputs):
            key = self.types.key_of(folder, number, output)
            _write_whole(self._folder / key, output.data)
            stored.append(describe_output(key, output))
        # Sync the parent folder last: on most file systems, syncing the files already made it
        # durable, so this has nothing left to do.
        _sync_folder(path)
        _sync_folder(self._folder)
        return stored

    def _make_folder(self, path: Path) -> None:
        """Create a folder for outputs, and durably its parent."""
        if self._is_rooted:
            # The parent folder may have been removed.
            with contextlib.suppress(FileNotFoundError):
                path.mkdir(FOLDER_MODE, exist_ok=True)
                return
        self._folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        _sync_folder(self._folder.parent)
        self._is_rooted = True
        path.mkdir(FOLDER_MODE, exist_ok=True)

    async def links(
        self, outputs: Sequence[StoredOutput], *, now: float, expires_at: float
    ) -> list[str]:
        """Return a path below `/files/` for each output.

        A link is valid for one to two hours, but not beyond `expires_at`. Polls within the same
        hour get the same link.
        """
        until = int(min((now // _LINK_S + 2) * _LINK_S, expires_at))
        return [
            f"/files/{key}?expires={until}&signature={self._sign(f'{key}:{until}').decode()}"
            for key in (output.key for output in outputs)
        ]

    def open(self, key: str, *, expires: str, signature: str, now: float) -> Path:
        """Return the file behind a link.

        Raises `NotFound` if the link is wrong or expired, or its file is deleted. The error does
        not reveal which.
        """
        try:
            self._signer.unsign(f"{key}:{expires}.{signature}")
            path = self._folder / key
            if int(expires) > now and path.is_file():
                return path
        except (BadSignature, ValueError, OSError):
            pass
        raise NotFound("No such file, or its link has expired. Poll the task for a fresh link.")

    async def read(self, output: StoredOutput) -> bytes:
        """Return an output's bytes."""
        with _translate_errors("be read"):
            return await asyncio.to_thread((self._folder / output.key).read_bytes)

    async def delete(self, outputs: Sequence[StoredOutput | StoredFile]) -> None:
        """Delete outputs, ignoring those that are already gone.

        Raises `OutputStoreUnavailable` for those of a bucket, which may be set again.
        """
        if any(_SCHEME in output.key for output in outputs):
            raise OutputStoreUnavailable("The outputs are in a bucket: set GATEWAY_OUTPUTS_URL.")
        with _translate_errors("delete outputs"):
            await asyncio.to_thread(self._delete, [self._folder / output.key for output in outputs])

    def _delete(self, paths: Sequence[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in paths}:
            # The folder is not empty, or already gone.
            with contextlib.suppress(OSError):
                folder.rmdir()

    async def written_before(self, before: float) -> AsyncIterator[list[StoredFile]]:
        """Yield files last written before a time (Unix seconds), in batches, with partial ones."""
        with _translate_errors("list outputs"):
            folders = iter(await asyncio.to_thread(self._folders))
            while batch := list(islice(folders, _BATCH)):
                yield await asyncio.to_thread(_find_old_files, batch, before)

    def _folders(self) -> list[Path]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            return [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False)]
        return []

    async def probe(self) -> str:
        """Write, read and delete a small file; returns a description of the folder.

        Raises `OutputStoreUnavailable`.
        """
        (kept,) = (await self.save("check-outputs", Result(text="check"))).outputs
        data = await self.read(kept)
        await self.delete([kept])
        if data != b"check":
            raise OutputStoreUnavailable("The outputs' folder returns other bytes than it got.")
        return f"the folder {self._folder}"


def describe_output(key: str, output: Output) -> StoredOutput:
    """Return the database record of an output.

    Hashing a large one takes tens of milliseconds, so call this in a thread.
    """
    return StoredOutput(
        key=key,
        media_type=output.media_type,
        size_bytes=len(output.data),
        sha256=hashlib.sha256(output.data).hexdigest(),
        width=output.width,
        height=output.height,
        seconds=output.seconds,
    )


def _write_whole(path: Path, data: bytes) -> None:
    """Write a temporary file, sync it, then rename it."""
    partial = path.with_suffix(".partial")
    with open(partial, "wb", opener=private_opener) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _find_old_files(folders: Iterable[Path], before: float) -> list[StoredFile]:
    found = []
    for folder in folders:
        # The folder or a file may be deleted concurrently.
        with contextlib.suppress(OSError):
            old = [path for path in folder.iterdir() if path.stat().st_mtime < before]
            found += [_stored_file(path) for path in old if is_ours(path.name)]
            # A crash left the folder empty. List a missing file, so that the folder gets deleted.
            if not old and folder.stat().st_mtime < before and not any(folder.iterdir()):
                found.append(_stored_file(folder / "0.partial"))
    return found


def _stored_file(path: Path) -> StoredFile:
    key = f"{path.parent.name}/{path.name}"
    return StoredFile(key=key, task_id=task_of(key))


@contextlib.contextmanager
def _translate_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputStoreUnavailable(
            f"The outputs' folder cannot {doing}: {error.strerror}."
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make renames survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
