"""A root folder made by debootstrap, and commands that run in it as in a container."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs

# Packages of python:3.12-slim that a bare Debian lacks; the Python is Debian's. The Dockerfile
# installs binutils itself, but its commands reach no network here.
_PACKAGES = "binutils,ca-certificates,python3,python3-venv"
# The PATH of Docker's Python images.
PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENTER = """
mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && cd / && exec chroot "$0" "$@"
"""
# Only /data and /tmp are writable, as with a container's `read_only` and `tmpfs`.
_ENTER_READ_ONLY = """
set -e
mount --bind "$0" "$0" && mount --bind "$0/data" "$0/data" && mount -t tmpfs tmpfs "$0/tmp"
mount -o remount,bind,ro "$0"
"""
_APART = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
_IN_FOLDER = 'cd "$0" && exec "$@"'


@attrs.frozen(kw_only=True)
class CleanRoot:
    """A folder with a complete Debian."""

    folder: Path

    def copied(self, folder: Path) -> "CleanRoot":
        """Copy everything into a folder, which is emptied first."""
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["cp", "--archive", self.folder, folder], check=True)
        return CleanRoot(folder=folder)

    def inside(self, path: str) -> Path:
        """Return the path on this machine of a path in the root."""
        return self.folder / path.lstrip("/")

    def entering(self, *words: str, workdir: str = "/") -> list[str]:
        """Return the command line that runs words in the root, as the first process of its own.

        The command reaches no network, not even this machine.
        """
        enter = [*_APART, "--net", "sh", "-c", _ENTER, str(self.folder)]
        return [*enter, "/bin/sh", "-c", _IN_FOLDER, workdir, *words]

    def serving(self, *words: str, workdir: str, rights: list[str]) -> list[str]:
        """Return the command line that runs words as Compose would, on this machine's network.

        `rights` are the command's capabilities, such as CHOWN.
        """
        enter = [*_APART, "sh", "-c", _ENTER_READ_ONLY + _ENTER, str(self.folder)]
        kept = ",".join(["-all", *(f"+{one.lower()}" for one in rights)])
        confined = ["setpriv", "--no-new-privs", f"--bounding-set={kept}", *words]
        return [*enter, "/bin/sh", "-c", _IN_FOLDER, workdir, *confined]

    def run(self, *words: str, variables: Mapping[str, str], workdir: str = "/") -> None:
        """Run a command without a network.

        Raises `CalledProcessError` if it fails; its output is in this terminal.
        """
        command = self.entering(*words, workdir=workdir)
        subprocess.run(command, env={"PATH": PATH, **variables}, check=True)

    def python_version(self) -> str:
        """Return the minor version of the root's Python, such as 3.13."""
        ask = "import sys; print('%d.%d' % sys.version_info[:2])"
        command = self.entering("python3", "-c", ask)
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        return answer.stdout.strip()


def debian(folder: Path, suite: str) -> CleanRoot:
    """Return a bare Debian with Python, made once and kept in the folder.

    `python` and `pip` are in /usr/local/bin, as in Docker's Python images.
    """
    root = CleanRoot(folder=folder / f"debian-{suite}")
    if not root.inside("usr/local/bin/pip").exists():
        shutil.rmtree(root.folder, ignore_errors=True)
        make = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", suite, root.folder]
        subprocess.run([*make, *_mirror()], check=True, stdout=subprocess.DEVNULL)
        # As in Docker's images.
        shutil.rmtree(root.inside("var/cache/apt/archives"))
        shutil.rmtree(root.inside("var/lib/apt/lists"))
        root.run("python3", "-m", "venv", "/usr/local", variables={})
    return root


def _mirror() -> list[str]:
    """Return this machine's Debian mirror; empty if it is not a Debian."""
    if named := os.environ.get("MIRROR"):
        return [named]
    ask = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    answer = subprocess.run([*ask, "Origin: Debian"], check=False, capture_output=True, text=True)
    return answer.stdout.split()[:1]


def downloaded(lists: list[Path], python: str, folder: Path) -> None:
    """Download the wheels of lists with hashes into a folder, for another Python than this one."""
    machine = platform.machine()
    glibcs = [f"manylinux_2_{minor}_{machine}" for minor in range(5, 42)]
    platforms = [f"--platform={one}" for one in (*glibcs, f"manylinux2014_{machine}")]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps"]
    only = ["--only-binary=:all:", f"--python-version={python}", f"--dest={folder}"]
    for one in lists:
        subprocess.run([*pip, *only, *platforms, f"--requirement={one}"], check=True)
