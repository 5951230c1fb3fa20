"""The packages of the image, taken from the environment of the tests and pruned."""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import attrs

from tests.proof.distribution.test_pinned_versions import pins

ROOT = Path(__file__).parents[3]
PRUNE = ROOT / "deploy" / "prune.py"
# Where this checkout's own modules are.
SOURCES = (ROOT, ROOT / "providers", ROOT / "plugins")


@attrs.define
class Packages:
    """An environment with the packages of one of the lists of the image, and nothing else."""

    home: Path

    @classmethod
    def of_list(cls, home: Path, name: str) -> "Packages":
        """Link the packages of a list, such as deploy/image.txt, into a new environment."""
        made = cls(home)
        venv.create(home, with_pip=False)
        for pin in pins(name):
            if pin.is_for():
                made._link(importlib.metadata.distribution(pin.name))
        # Only its entry points: its modules are on the path.
        made._link(importlib.metadata.distribution("generation-gateway"), only=".dist-info")
        return made

    def _link(self, package: importlib.metadata.Distribution, only: str = "") -> None:
        for file in package.files or ():
            if ".." in file.parts or only not in str(file):
                continue
            source, target = Path(str(package.locate_file(file))), self.site / file
            _link_file(source, target)
            if source.suffix == ".py":
                _link_file(_bytecode(source), _bytecode(target))

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def site(self) -> Path:
        return next((self.home / "lib").glob("python*")) / "site-packages"

    def prune(self) -> str:
        """Run deploy/prune.py on it and return its output."""
        command = [self.python, PRUNE]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def run(self, script: str, *words: str | Path) -> str:
        """Run a script that sees these packages and the checkout; return its output."""
        done = subprocess.run(
            [self.python, "-c", script, *words],
            check=False,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, SOURCES))},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def _bytecode(source: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(source)))


def _link_file(source: Path, target: Path) -> None:
    if not source.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # Several packages have a docs/Makefile at the top.
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        # Another file system.
        shutil.copy2(source, target)


def prune(folder: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run deploy/prune.py on a folder."""
    command = [sys.executable, PRUNE, folder]
    variables = {**os.environ, **environment}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=variables)
