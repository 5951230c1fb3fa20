"""A plugin's project: where its code is, and its entry points without an installation."""

import contextlib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from gateway.errors import SettingsError

_WATCHED = (".py", ".sql", ".toml")
_SKIPPED = ("tests", "node_modules", "__pycache__", "dist", "build")


@attrs.frozen(kw_only=True)
class Project:
    """A folder with pyproject.toml; `entry_points` are those of all groups, by group and name."""

    folder: Path
    name: str
    entry_points: Mapping[str, Mapping[str, str]]

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """Read a project; raises `SettingsError` if the folder has no plugin."""
        try:
            project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"pyproject.toml cannot be read here ({error}). Run this in a plugin's folder; "
                "`gateway plugins new acme` writes one."
            ) from None
        fields = project.get("project", {})
        groups = fields.get("entry-points", {})
        if not groups.get("gateway"):
            raise SettingsError(
                "pyproject.toml has no [project.entry-points.gateway], by which the gateway finds "
                'a plugin. Add it with a line such as: acme = "gateway_acme"'
            )
        return cls(folder=folder, name=str(fields["name"]), entry_points=groups)

    @property
    def source(self) -> Path:
        """The folder of the modules."""
        inner = self.folder / "src"
        return inner if inner.is_dir() else self.folder

    @property
    def prefixes(self) -> list[str]:
        """The usual prefixes of the plugins' settings: `acme` of the module `gateway_acme`."""
        modules = self.entry_points["gateway"].values()
        return [module.partition(":")[0].removeprefix("gateway_") for module in modules]

    def write_metadata(self, site: Path) -> None:
        """Write metadata by which Python finds the entry points, as an installation would."""
        about = site / f"{self.name.replace('-', '_')}-0.dist-info"
        about.mkdir(parents=True, exist_ok=True)
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {self.name}\nVersion: 0\n", "utf-8"
        )
        lines = []
        for group, names in self.entry_points.items():
            lines += [f"[{group}]", *(f"{name} = {place}" for name, place in names.items())]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")


def find_changes(project: Path, before: Mapping[Path, int]) -> list[str]:
    """Return the files of a folder that are new, changed or gone since `before`."""
    now = stamps_of(project)
    changed = [path for path in {**before, **now} if before.get(path) != now.get(path)]
    return sorted(str(path.relative_to(project)) for path in changed)


def stamps_of(project: Path) -> dict[Path, int]:
    """Return the time of the last change of each file that matters to a gateway, in nanoseconds."""
    found = {}
    for folder, folders, names in os.walk(project):
        folders[:] = [each for each in folders if each[0] != "." and each not in _SKIPPED]
        for path in (Path(folder) / name for name in names if name.endswith(_WATCHED)):
            # An editor replaces files by new ones, so a file may be gone by now.
            with contextlib.suppress(FileNotFoundError):
                found[path] = path.stat().st_mtime_ns
    return found
