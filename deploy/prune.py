"""Removes from a folder of packages what a running gateway never reads.

The Dockerfile runs it with the image's Python. Removed are the sources of compiled libraries, type
stubs, tests, and the debug tables of shared libraries. tests/proof/image/test_prune.py prunes the
packages of deploy/image.txt and runs the gateway on the rest.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

# Sources of libraries and of translations, headers, and type stubs. Python reads none of them.
SOURCES = frozenset((".c", ".cc", ".cpp", ".h", ".hpp", ".po", ".pxd", ".pxi", ".pyi", ".pyx"))
# Folders of a package's own tests, by Crypto's name for them too, and of numpy's examples.
TESTS = frozenset(("SelfTest", "_examples", "tests"))
# A module for Python 2: compileall, and so the image's build, would fail on it.
PYTHON_2 = ("olefile/olefile2.py",)
_ELF = b"\x7fELF"
_LOAD = "import ctypes, sys\nfor one in sys.argv[1:]: ctypes.CDLL(one)"


def main() -> int:
    """Prune the folder that is named, or this Python's packages, and print what that saved."""
    named = sys.argv[1:] or [sysconfig.get_path("purelib")]
    site = Path(named[0])
    if not shutil.which("strip"):
        sys.stderr.write("prune.py needs `strip`: apt-get install binutils\n")
        return 1
    before = _size(site)
    _remove_tests(site)
    _remove_sources(site)
    without_tests = _size(site)
    if broken := _strip(_libraries(site)):
        sys.stderr.write(f"prune.py: after `strip` a library cannot be loaded: {broken}\n")
        return 1
    after = _size(site)
    sys.stdout.write(
        f"pruned {_mb(before)} MB to {_mb(after)}: sources and tests {_mb(before - without_tests)},"
        f" debug tables {_mb(without_tests - after)}\n"
    )
    return 0


def _remove_tests(site: Path) -> None:
    folders = [Path(at, name) for at, names, _ in os.walk(site) for name in names if name in TESTS]
    for folder in folders:
        # The folder around it may be gone.
        shutil.rmtree(folder, ignore_errors=not folder.exists())


def _remove_sources(site: Path) -> None:
    for one in _files(site):
        if one.suffix in SOURCES or str(one.relative_to(site)) in PYTHON_2:
            one.unlink()


def _libraries(site: Path) -> list[Path]:
    """Return the shared libraries that `strip` may change.

    Those in a folder such as numpy.libs were moved there by auditwheel; `strip` breaks some of
    them, and would save little.
    """
    named = (one for one in _files(site) if one.suffix == ".so" and one.parent.suffix != ".libs")
    return [one for one in named if one.read_bytes().startswith(_ELF)]


def _strip(found: list[Path]) -> str:
    """Take the debug tables out of libraries; return why one cannot be loaded then."""
    for one in found:
        # Into a new file: the old one may have other names, in a cache of uv's for example.
        smaller = one.with_name(f"{one.name}.stripped")
        subprocess.run(["strip", "--strip-unneeded", "-o", smaller, one], check=True)
        shutil.copystat(one, smaller)
        smaller.replace(one)
    load = [sys.executable, "-c", _LOAD, *found]
    done = subprocess.run(load, check=False, capture_output=True, text=True)
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def _files(site: Path) -> list[Path]:
    return [one for one in site.rglob("*") if one.is_file() and not one.is_symlink()]


def _size(site: Path) -> int:
    return sum(one.stat().st_size for one in _files(site))


def _mb(size: int) -> str:
    return f"{size / 1_000_000:.0f}"


if __name__ == "__main__":
    sys.exit(main())
