"""Outputs on the local disk: written durably, hashed, served by signed links that expire."""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import structlog
from itsdangerous import BadSignature, Signer

from gateway.domain import Output, Result, StoredOutput, StoredResult
from gateway.errors import NotFound

_ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "text/markdown": "md",
    "text/plain": "txt",
    "application/json": "json",
    "application/pdf": "pdf",
}
_log = structlog.get_logger()


class LocalArtifacts:
    """One folder of outputs, one sub-folder a task. Implements `contracts.Artifacts`."""

    def __init__(self, folder: Path, secret: str) -> None:
        self._folder = folder
        self._signer = Signer(secret, salt="files", digest_method=hashlib.sha256)

    async def save(self, task_id: str, result: Result) -> StoredResult:
        """Write outputs durably, hashed; text becomes a Markdown output of its own."""
        outputs = list(result.outputs)
        if result.text is not None:
            outputs.append(Output(data=result.text.encode(), media_type="text/markdown"))
        stored = [
            await asyncio.to_thread(self._write, f"{task_id}/{number}", output)
            for number, output in enumerate(outputs)
        ]
        return StoredResult(outputs=tuple(stored), text=result.text)

    def _write(self, stem: str, output: Output) -> StoredOutput:
        """Write one file so that it is there whole after a power cut, or not at all."""
        key = f"{stem}.{_ENDINGS.get(output.media_type, 'bin')}"
        path = self._folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            file.write(output.data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        for folder in (path.parent, self._folder):
            _sync_folder(folder)
        return StoredOutput(
            key=key,
            media_type=output.media_type,
            size_bytes=len(output.data),
            sha256=hashlib.sha256(output.data).hexdigest(),
            width=output.width,
            height=output.height,
        )

    def link(self, output: StoredOutput, *, expires_at: float) -> str:
        """Return a path under `/files/` that works until `expires_at`."""
        until = int(expires_at)
        signature = self._signer.get_signature(f"{output.key}:{until}").decode()
        return f"/files/{output.key}?expires={until}&signature={signature}"

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

    async def delete(self, outputs: Sequence[StoredOutput]) -> None:
        """Remove outputs; those already gone are fine."""
        await asyncio.to_thread(self._delete, [self._folder / output.key for output in outputs])

    def _delete(self, paths: Sequence[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in paths}:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
