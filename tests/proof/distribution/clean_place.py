"""A clean environment: the built wheel, installed where the checkout is not visible."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[3]
_CONFIGURES_PIP = ("PIP_", "HTTP", "http", "SSL_", "REQUESTS_")


def built(project: Path, folder: Path) -> Path:
    """Build a project's wheel into a folder."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
    subprocess.run([*build, project], check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    return wheel


@attrs.define
class CleanPlace:
    """A virtual environment, and a folder to work in."""

    home: Path

    @classmethod
    def made(cls, home: Path, *wheels: Path) -> "CleanPlace":
        """Install wheels; their dependencies come from this environment."""
        place = cls(home)
        venv.create(home / "venv", with_pip=False)
        site = next((home / "venv" / "lib").glob("python*")) / "site-packages"
        # A line in a .pth file runs no other .pth file, so the editable install of the project
        # stays invisible.
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
        place.work.mkdir()
        pip = [sys.executable, "-m", "pip", "--python", place.python, "install", "--quiet"]
        offline = ["--no-index", "--no-deps", "--disable-pip-version-check"]
        subprocess.run([*pip, *offline, *wheels], check=True, capture_output=True, timeout=120)
        return place

    @property
    def work(self) -> Path:
        return self.home / "work"

    @property
    def python(self) -> Path:
        return self.home / "venv" / "bin" / "python"

    def environment(self, **variables: str) -> dict[str, str]:
        """Return a nearly empty environment for a command."""
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(_CONFIGURES_PIP)
        }
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        return kept | {"PATH": path, "HOME": str(self.home)} | variables

    def run(
        self, *arguments: str | Path, cwd: Path | None = None, timeout: int = 60, **variables: str
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.python, *arguments],
            cwd=cwd or self.work,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
