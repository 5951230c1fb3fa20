"""Saves outputs under our own names; a gateway's text never becomes part of a path."""

import base64
import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from gateway.domain import MAX_FILE_BYTES
from gateway_buyer.errors import NotBought, Unfinished

_ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
    "text/markdown": "md",
    "text/plain": "txt",
    "text/html": "html",
    "application/json": "json",
    "application/pdf": "pdf",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mp4": "m4a",
    "audio/midi": "mid",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "application/x-subrip": "srt",
    "text/vtt": "vtt",
    "model/gltf-binary": "glb",
}
_OTHER_ENDING = "bin"
SLUG = re.compile(r"(?=.{1,64}$)[a-z0-9]+(?:[-._][a-z0-9]+)*")
# Enough of a task's id to distinguish two results in one folder.
_ID_CHARS = 8


def read_file(path: Path) -> dict[str, str]:
    """Return the fields of a request that send a file; raises `ValueError` with a sentence."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}).") from None
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"{path} is larger than the limit of {MAX_FILE_BYTES:,} bytes.")
    return {"fileBase64": base64.b64encode(content).decode(), "fileName": path.name}


@attrs.frozen(kw_only=True)
class Destination:
    """Where to save the result: a folder, or a file's name."""

    path: Path
    may_overwrite: bool

    # What to do about a file that exists.
    way_out: str = "Name another file by --out, or replace it by --force."

    @property
    def is_folder(self) -> bool:
        """Whether the files in it get generated names."""
        return self.path.is_dir()

    def check(self) -> None:
        """Raise `NotBought` if a result could not be saved. Called before anything is paid."""
        folder = self.path if self.is_folder else self.path.parent
        if not os.access(folder, os.W_OK | os.X_OK) or not folder.is_dir():
            raise NotBought(
                f"Nothing can be saved in {folder}. Name a folder that exists, or a file in one, "
                "by --out."
            )
        if not self.is_folder:
            self._check_free(self.path)

    def choose_paths(self, slug: str, task_id: str, media_types: Sequence[str]) -> list[Path]:
        """Return a path for each output."""
        stem = slug if SLUG.fullmatch(slug) else "task"
        names = list(_number(f"{stem}-{task_id[:_ID_CHARS]}", media_types))
        if self.is_folder:
            return [self.path / name for name in names]
        return list(_number_path(self.path, len(names)))

    def has(self, path: Path, sha256: str) -> bool:
        """Whether a file with this checksum (hex) is there."""
        try:
            # Not a pipe, which would wait.
            if not path.is_file():
                return False
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == sha256.lower()
        except OSError:
            return False

    def save(self, path: Path, content: bytes) -> None:
        """Write a file atomically; an existing file with the same content stays.

        Raises `Unfinished`: the task can be fetched again.
        """
        try:
            with _written(path.parent, content) as temporary:
                if not self.may_overwrite:
                    # If two programs save under one name, only one succeeds.
                    path.touch(exist_ok=False)
                temporary.replace(path)
        except FileExistsError:
            if not path.is_file() or path.read_bytes() != content:
                raise Unfinished(f"{path} exists. {self.way_out}") from None
        except OSError as error:
            raise Unfinished(f"{path} cannot be written ({error.strerror}).") from None

    def _check_free(self, path: Path) -> None:
        if path.is_dir() or (os.path.lexists(path) and not self.may_overwrite):
            raise NotBought(f"{path} exists. {self.way_out}")


def _number(stem: str, media_types: Sequence[str]) -> Iterator[str]:
    for number, media_type in enumerate(media_types, start=1):
        kind = media_type.partition(";")[0].strip().lower()
        place = f"-{number}" if len(media_types) > 1 else ""
        yield f"{stem}{place}.{_ENDINGS.get(kind, _OTHER_ENDING)}"


def _number_path(path: Path, count: int) -> Iterator[Path]:
    """Yield the path, then `name-2.png` and so on."""
    yield path
    for number in range(2, count + 1):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


@contextlib.contextmanager
def _written(folder: Path, content: bytes) -> Iterator[Path]:
    """Yield a temporary file with the content; it is deleted if it still exists."""
    opened, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(content)
        # mkstemp makes private files. An output gets the usual permissions.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
