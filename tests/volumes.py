"""Small separate volumes, which a test fills: with bytes, or with files that take inodes."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small volume needs root")


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Mount a tmpfs within the block; skips the test if this machine cannot."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this machine mounts no tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill_bytes(folder: Path) -> list[Path]:
    """Fill a volume to its last byte; returns the files to delete."""
    path = folder / "filling"
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4_096))
    return [path]


def fill_inodes(folder: Path, *, but: int = 0) -> list[Path]:
    """Make files until only `but` more can be made; returns the files to delete."""
    made = []
    while os.statvfs(folder).f_favail > but:
        made.append(folder / f"file-{len(made)}")
        made[-1].touch()
    return made
