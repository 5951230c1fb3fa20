"""Files and folders that only their owner may read, whatever the umask is."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_OTHERS = 0o077
_DATABASES = "gateway.db"  # and what lies beside it: -wal, -shm, those put aside
_LOCK = "gateway.lock"
_OUTPUTS = "outputs"


def private_opener(path: str, flags: int) -> int:
    """Open a file that is private if this makes it; for `open(opener=…)`."""
    return os.open(path, flags, FILE_MODE)


def create_private(path: Path) -> None:
    """Make an empty private file; raises `FileExistsError`."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))


def make_private(folder: Path) -> None:
    """Take from others what an earlier start, or another program, let them read.

    Below a folder that was private already nobody could read anything: it is not walked.
    What belongs to another user is left to that user, and a folder that all users share
    (such as /tmp) stays as it is.
    """
    if folder.stat().st_mode & stat.S_ISVTX:
        return
    _tighten(folder)
    for path in our_files(folder):
        if path.name != _OUTPUTS:
            _tighten(path)
        elif _is_open(path):
            _tighten(path)
            for below in _everything(path):
                _tighten(below)


def our_files(folder: Path) -> Iterator[Path]:
    """Yield what the gateway keeps in its data folder: databases, the lock, the outputs."""
    for name in _our_names(folder):
        yield folder / name


def give_to(folder: Path, user: int, group: int) -> None:
    """Give what root has left in the data folder to the folder's owner; only root can.

    A link is never followed, and a file with a second name is not given away: the folder's owner
    may have made either of them. Nothing is reached by its path, into which that user may put a
    link at any moment, but by its name in an open folder.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in _our_names(opened):
            with contextlib.suppress(FileNotFoundError):
                _give(name, opened, user, group)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for _, folders, files, within in os.fwalk(_OUTPUTS, dir_fd=opened):
                for name in (*folders, *files):
                    with contextlib.suppress(FileNotFoundError):
                        _give(name, within, user, group)
    finally:
        os.close(opened)


def _give(name: str, folder: int, user: int, group: int) -> None:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    is_plain = stat.S_ISDIR(found.st_mode) or found.st_nlink == 1
    if found.st_uid == 0 and is_plain:
        os.chown(name, user, group, dir_fd=folder, follow_symlinks=False)


def _our_names(folder: Path | int) -> list[str]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    return [n for n in names if n in (_LOCK, _OUTPUTS) or n.startswith(_DATABASES)]


def _everything(folder: Path) -> Iterator[Path]:
    """Yield all that is below a folder; nothing where it is none."""
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))


def _is_open(path: Path) -> bool:
    return bool(path.lstat().st_mode & _OTHERS)


def _tighten(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        is_ours = found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode)
        if is_ours and found.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
