"""Outputs on the local disk: written durably, hashed, served by signed links that expire."""

import asyncio
import contextlib
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

_LINK_S = 3600  # a link works for at least this long after the poll that showed it
_BATCH = 100  # folders looked into at a time


class DiskOutputs:
    """One folder of outputs, one sub-folder a lease. Implements `contracts.OutputStore`."""

    def __init__(self, folder: Path, secret: str) -> None:
        self._folder = folder
        self._signer = Signer(secret, salt="files", digest_method=hashlib.sha256)

    async def save(self, folder: str, result: Result) -> StoredResult:
        """Write outputs durably, hashed; text becomes a Markdown output of its own."""
        with _told("take outputs"):
            stored = [
                await asyncio.to_thread(self._write, key_of(folder, number, output), output)
                for number, output in enumerate(outputs_of(result))
            ]
        return StoredResult(outputs=tuple(stored), text=result.text)

    def _write(self, key: str, output: Output) -> StoredOutput:
        """Write one file so that it is there whole after a power cut, or not at all."""
        path = self._folder / key
        self._folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        path.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        with open(partial, "wb", opener=private_opener) as file:
            file.write(output.data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        for folder in (path.parent, self._folder, self._folder.parent):
            _sync_folder(folder)
        return stored_as(key, output)

    async def links(
        self, outputs: Sequence[StoredOutput], *, now: float, expires_at: float
    ) -> list[str]:
        """Return a path under `/files/` each; the same from poll to poll, for an hour or two."""
        until = int(min((now // _LINK_S + 2) * _LINK_S, expires_at))
        return [self._link(output.key, until) for output in outputs]

    def _link(self, key: str, until: int) -> str:
        signature = self._signer.get_signature(f"{key}:{until}").decode()
        return f"/files/{key}?expires={until}&signature={signature}"

    def open(self, key: str, *, expires: str, signature: str, now: float) -> Path:
        """Return the file behind a link.

        Raises `NotFound` for a wrong, expired or deleted one; which of them stays unsaid.
        """
        try:
            self._signer.unsign(f"{key}:{expires}.{signature}")
            path = self._folder / key
            if int(expires) > now and path.is_file():
                return path
        except (BadSignature, ValueError, OSError):
            pass
        raise NotFound("No such file, or its link has expired. Poll the task for a fresh link.")

    async def delete(self, outputs: Sequence[StoredOutput | Kept]) -> None:
        """Remove outputs; those already gone are fine."""
        with _told("delete outputs"):
            await asyncio.to_thread(self._delete, [self._folder / output.key for output in outputs])

    def _delete(self, paths: Sequence[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in paths}:
            with contextlib.suppress(OSError):  # not empty, or gone
                folder.rmdir()

    async def written_before(self, before: float) -> AsyncIterator[list[Kept]]:
        """Yield what was last written before a time, halves too, some at a time."""
        with _told("list outputs"):
            folders = iter(await asyncio.to_thread(self._folders))
            while batch := list(islice(folders, _BATCH)):
                yield await asyncio.to_thread(_old_files, batch, before)

    def _folders(self) -> list[Path]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            return [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False)]
        return []

    async def probe(self) -> str:
        """Write, read and delete a small file; returns where. Raises `OutputStoreUnavailable`."""
        (kept,) = (await self.save("check-outputs", Result(text="check"))).outputs
        with _told("be read"):
            data = await asyncio.to_thread((self._folder / kept.key).read_bytes)
        await self.delete([kept])
        if data != b"check":
            raise OutputStoreUnavailable("The outputs' folder gives back other bytes than it took.")
        return f"the folder {self._folder}"


def stored_as(key: str, output: Output) -> StoredOutput:
    """Return what is written down about an output: tens of milliseconds, so call it in a thread."""
    return StoredOutput(
        key=key,
        media_type=output.media_type,
        size_bytes=len(output.data),
        sha256=hashlib.sha256(output.data).hexdigest(),
        width=output.width,
        height=output.height,
    )


def _old_files(folders: Iterable[Path], before: float) -> list[Kept]:
    found = []
    for folder in folders:
        with contextlib.suppress(OSError):  # deleted meanwhile
            old = [path for path in folder.iterdir() if path.stat().st_mtime < before]
            found += [_kept(path) for path in old if is_ours(path.name)]
            if not old and folder.stat().st_mtime < before and not any(folder.iterdir()):
                found.append(_kept(folder / "0.partial"))  # the file that a crash prevented
    return found


def _kept(path: Path) -> Kept:
    key = f"{path.parent.name}/{path.name}"
    return Kept(key=key, task_id=task_of(key))


@contextlib.contextmanager
def _told(doing: str) -> Iterator[None]:
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
