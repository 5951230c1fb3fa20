"""Outputs on the local disk: written durably with their hashes, served by signed links."""

import asyncio
import contextlib
import functools
import hashlib
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from itsdangerous import BadSignature, Signer

from gateway.contracts.outputs import Kept, OutputStoreUnavailable
from gateway.domain import Output, Result, StoredOutput, StoredResult
from gateway.errors import NotFound
from gateway.outputs.keys import is_ours, key_of, outputs_of, task_of
from gateway.private_files import FOLDER_MODE, private_opener

# A link works for at least this time after the poll that showed it.
_LINK_S = 3600
# They take 300 KB.
_KEPT_SIGNATURES = 1024
# So many folders are listed at a time.
_BATCH = 100


class DiskOutputs:
    """Outputs in one folder, a sub-folder for each lease. Implements `contracts.OutputStore`."""

    def __init__(self, folder: Path, secret: str) -> None:
        self._folder = folder
        # Whether this process has made sure that a power cut leaves the folder.
        self._is_rooted = False
        self._signer = Signer(secret, salt="files", digest_method=hashlib.sha256)
        # Each poll of a finished task shows the same links for an hour.
        self._sign = functools.lru_cache(maxsize=_KEPT_SIGNATURES)(self._signer.get_signature)

    async def save(self, folder: str, result: Result) -> StoredResult:
        """Write outputs durably with their hashes; text becomes an output of its own."""
        with _translate_errors("take outputs"):
            stored = await asyncio.to_thread(self._write_all, folder, outputs_of(result))
        return StoredResult(outputs=tuple(stored), text=result.text)

    def _write_all(self, folder: str, outputs: Sequence[Output]) -> list[StoredOutput]:
        """Write files so that after a power cut each is there whole, or not at all.

        Their names are durable when this returns, but not before.
        """
        path = self._folder / folder
        self._make_folder(path)
        stored = []
        for number, output in enumerate(outputs):
            key = key_of(folder, number, output)
            _write_whole(self._folder / key, output.data)
            stored.append(describe_output(key, output))
        # The outputs' folder comes last: what made the files' names durable made its own so, too,
        # on most file systems, and then its sync has nothing to do.
        _sync_folder(path)
        _sync_folder(self._folder)
        return stored

    def _make_folder(self, path: Path) -> None:
        """Make a folder for outputs, and the folder of all of them durably."""
        if self._is_rooted:
            # Somebody may have removed the folder of all.
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

        A link works for one to two hours, at most until `expires_at`. Polls within the same hour
        get the same link.
        """
        until = int(min((now // _LINK_S + 2) * _LINK_S, expires_at))
        return [self._link(output.key, until) for output in outputs]

    def _link(self, key: str, until: int) -> str:
        signature = self._sign(f"{key}:{until}").decode()
        return f"/files/{key}?expires={until}&signature={signature}"

    def open(self, key: str, *, expires: str, signature: str, now: float) -> Path:
        """Return the file behind a link.

        Raises `NotFound` where the link is wrong or expired or its file is deleted. The error does
        not say which, so that a guesser learns nothing.
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

    async def delete(self, outputs: Sequence[StoredOutput | Kept]) -> None:
        """Remove outputs; an output that is gone already is no error."""
        with _translate_errors("delete outputs"):
            await asyncio.to_thread(self._delete, [self._folder / output.key for output in outputs])

    def _delete(self, paths: Sequence[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in paths}:
            # The folder is not empty, or it is gone.
            with contextlib.suppress(OSError):
                folder.rmdir()

    async def written_before(self, before: float) -> AsyncIterator[list[Kept]]:
        """Yield what was last written before a time (Unix seconds), in batches; half files too."""
        with _translate_errors("list outputs"):
            folders = iter(await asyncio.to_thread(self._folders))
            while batch := list(islice(folders, _BATCH)):
                yield await asyncio.to_thread(_find_old_files, batch, before)

    def _folders(self) -> list[Path]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            return [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False)]
        return []

    async def probe(self) -> str:
        """Write, read and delete a small file; returns the folder in words.

        Raises `OutputStoreUnavailable`.
        """
        (kept,) = (await self.save("check-outputs", Result(text="check"))).outputs
        data = await self.read(kept)
        await self.delete([kept])
        if data != b"check":
            raise OutputStoreUnavailable("The outputs' folder returns other bytes than it got.")
        return f"the folder {self._folder}"


def describe_output(key: str, output: Output) -> StoredOutput:
    """Return what the database keeps of an output.

    The hash of a large one takes tens of milliseconds, so call this in a thread.
    """
    return StoredOutput(
        key=key,
        media_type=output.media_type,
        size_bytes=len(output.data),
        sha256=hashlib.sha256(output.data).hexdigest(),
        width=output.width,
        height=output.height,
    )


def _write_whole(path: Path, data: bytes) -> None:
    """Write one file under another name, and give it its own when its bytes are durable."""
    partial = path.with_suffix(".partial")
    with open(partial, "wb", opener=private_opener) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _find_old_files(folders: Iterable[Path], before: float) -> list[Kept]:
    found = []
    for folder in folders:
        # The folder or a file may be deleted meanwhile.
        with contextlib.suppress(OSError):
            old = [path for path in folder.iterdir() if path.stat().st_mtime < before]
            found += [_kept_file(path) for path in old if is_ours(path.name)]
            # A crash left the folder empty. It goes with the file that was not written.
            if not old and folder.stat().st_mtime < before and not any(folder.iterdir()):
                found.append(_kept_file(folder / "0.partial"))
    return found


def _kept_file(path: Path) -> Kept:
    key = f"{path.parent.name}/{path.name}"
    return Kept(key=key, task_id=task_of(key))


@contextlib.contextmanager
def _translate_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputStoreUnavailable(
            f"The outputs' folder cannot {doing}: {error.strerror}."
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
