"""The installation of a client: a virtual environment or an npm project, made once and kept."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import attrs

from tests.proof.clients.rows import Row

_INSTALL_S = 600
_MARK = "installed.json"  # written last: without it the folder is half made


class Skipped(Exception):
    """A row cannot run on this machine; the message is the reason."""


@attrs.frozen(kw_only=True)
class Place:
    """The program that runs a row's script, and the client's installed version."""

    command: tuple[str, ...]
    version: str


def default_cache() -> Path:
    """Return the user's cache folder (XDG base directories)."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return base / "generation-gateway" / "clients"


def prepare(row: Row, cache: Path) -> Place:
    """Install a row's client if needed; raises `Skipped`."""
    if row.runtime == "Node":
        return _npm_project(row, cache)
    if row.packages:
        return _virtual_environment(row, cache)
    return _python_place(sys.executable, row)


def _virtual_environment(row: Row, cache: Path) -> Place:
    (package, version), *others = row.packages
    more = "".join(f"-{name}-{pinned}" for name, pinned in others)
    folder = (
        cache / f"{package}-{version}{more}-python{sys.version_info.major}.{sys.version_info.minor}"
    )
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pinned = [f"{name}=={each}" for name, each in others]
    wanted = [f"{package}{row.extras}=={version}", *pinned]
    if not _is_installed(folder, wanted):
        _empty(folder)
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        pip = [sys.executable, "-m", "pip", "--python", str(python)]  # ours: a second takes seconds
        _run([*pip, "install", "--quiet", "--disable-pip-version-check", *wanted])
        _mark(folder, wanted)
    return _python_place(str(python), row)


def _python_place(python: str, row: Row) -> Place:
    package = row.packages[0][0] if row.packages else "x402"
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    version = _run([python, "-c", code]).strip()
    return Place(command=(python, str(row.buyer)), version=version)


def _npm_project(row: Row, cache: Path) -> Place:
    node, npm = _found("node"), _found("npm")
    client, version = row.packages[0]
    folder = cache / f"{client.replace('/', '+')}-{version}-node"
    packages = dict(row.packages)
    about = {"private": True, "type": "module", "dependencies": packages, "overrides": packages}
    if not _is_installed(folder, about):
        _empty(folder)
        (folder / "package.json").write_text(json.dumps(about))
        quiet = ["--json", "--loglevel=error", "--no-audit", "--no-fund"]
        safe = ["--ignore-scripts", "--no-package-lock"]
        _run([npm, "install", *quiet, *safe], folder)
        _mark(folder, about)
    script = folder / row.buyer.name  # Node looks for packages from where the script is
    shutil.copyfile(row.buyer, script)
    installed = json.loads((folder / "node_modules" / client / "package.json").read_text())
    return Place(command=(node, str(script)), version=installed["version"])


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise Skipped(f"{'Node' if program == 'node' else program} is not installed")
    return path


def _empty(folder: Path) -> None:
    print(f"installing into {folder}", file=sys.stderr, flush=True)  # noqa: T201 - it takes a while
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _is_installed(folder: Path, wanted: object) -> bool:
    mark = folder / _MARK
    return mark.exists() and json.loads(mark.read_text()) == wanted


def _mark(folder: Path, installed: object) -> None:
    (folder / _MARK).write_text(json.dumps(installed))


def _run(command: list[str], folder: Path | None = None) -> str:
    """Return the output of an install command; raises `Skipped`."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Skipped(f"cannot be installed ({error})") from None
    if done.returncode:
        raise Skipped(f"cannot be installed ({_reason(done.stdout, done.stderr)})")
    return done.stdout


def _reason(printed: str, complained: str) -> str:
    """Return the line with the reason: npm's is in its JSON, pip's and Python's is the last."""
    try:
        return str(json.loads(printed)["error"]["summary"]).splitlines()[0]
    except (ValueError, KeyError, TypeError, IndexError):
        lines = [line.strip() for line in complained.splitlines() if line.strip()]
        return lines[-1] if lines else "it did not say why"
