"""Files and folders that only their owner may read, independent of the umask."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_OTHERS = 0o077
# Prefix of all databases and their side files (-wal, -shm), including those that a restore put
# aside.
_DATABASES = "gateway.db"
_LOCK = "gateway.lock"
_OUTPUTS = "outputs"


def private_opener(path: str, flags: int) -> int:
    """Open a file, private if this call creates it; for `open(opener=…)`."""
    return os.open(path, flags, FILE_MODE)


def create_private(path: Path) -> None:
    """Create an empty private file; raises `FileExistsError`."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))


def make_private(folder: Path) -> None:
    """Revoke other users' access to the data folder's files.

    The outputs folder is skipped if it is already private: then nothing below it is readable. Files
    of another user are left alone, and so is a folder that all users share (such as /tmp).
    """
    if folder.stat().st_mode & stat.S_ISVTX:
        return
    _make_one_private(folder)
    for path in our_files(folder):
        if path.name != _OUTPUTS:
            _make_one_private(path)
        elif _is_open(path):
            _make_one_private(path)
            for below in _walk(path):
                _make_one_private(below)


def our_files(folder: Path) -> Iterator[Path]:
    """Yield the gateway's own files in its data folder: databases, the lock, the outputs folder."""
    for name in _our_names(folder):
        yield folder / name


def give_to(folder: Path, user: int, group: int) -> None:
    """Give the files that root left in the data folder to the folder's owner; only root can.

    Symbolic links are not followed, and a file with a second hard link keeps its owner: the
    folder's owner may have created either of them. Each file is accessed by name relative to an
    open folder, never by path: that user could put a symbolic link into a path at any moment.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in _our_names(opened):
            with contextlib.suppress(FileNotFoundError):
                _give_one(name, opened, user, group)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for _, folders, files, within in os.fwalk(_OUTPUTS, dir_fd=opened):
                for name in (*folders, *files):
                    with contextlib.suppress(FileNotFoundError):
                        _give_one(name, within, user, group)
    finally:
        os.close(opened)


def _give_one(name: str, folder: int, user: int, group: int) -> None:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    is_plain = stat.S_ISDIR(found.st_mode) or found.st_nlink == 1
    if found.st_uid == 0 and is_plain:
        os.chown(name, user, group, dir_fd=folder, follow_symlinks=False)


def _our_names(folder: Path | int) -> list[str]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    return [n for n in names if n in (_LOCK, _OUTPUTS) or n.startswith(_DATABASES)]


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))


def _is_open(path: Path) -> bool:
    return bool(path.lstat().st_mode & _OTHERS)


def _make_one_private(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        is_ours = found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode)
        if is_ours and found.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
