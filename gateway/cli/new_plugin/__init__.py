"""What `gateway plugins new` writes: a provider that sells pictures, with tests that pass."""

import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

import attrs

from gateway.errors import SettingsError
from gateway.plugins.manager import BUNDLED
from gateway.version import VERSION

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_CHARS = 40
_FILES = {  # where a template goes
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "gitignore.txt": ".gitignore",
    "plugin.py.txt": "src/{module}.py",
    "test_plugin.py.txt": "tests/test_{prefix}.py",
    "toy_api.py.txt": "toy_api.py",
}


@attrs.frozen
class Name:
    """A plugin's name, `acme` or `acme-fast`, in all the forms it is needed in."""

    plain: str

    @classmethod
    def of(cls, text: str) -> "Name":
        """Return the name; `gateway-` in front of it is no part of it. Raises `SettingsError`."""
        plain = text.removeprefix("gateway-")
        if not _NAME.fullmatch(plain) or len(plain) > _MAX_CHARS or keyword.iskeyword(plain):
            raise SettingsError(
                f"{text!r} is no name for a plugin: small letters, digits and hyphens, a letter "
                "first. Example: gateway plugins new acme"
            )
        name = cls(plain)
        if name.module in BUNDLED:
            raise SettingsError(
                f"The gateway has a plugin {name.module} of its own. Choose another name: "
                f"gateway plugins new my-{plain}"
            )
        return name

    @property
    def module(self) -> str:
        """The Python module."""
        return f"gateway_{self.prefix}"

    @property
    def prefix(self) -> str:
        """What the plugin's settings begin with."""
        return self.plain.replace("-", "_")

    @property
    def words(self) -> dict[str, str]:
        """Return what stands in the templates."""
        return {
            "name": self.plain,
            "module": self.module,
            "prefix": self.prefix,
            "variable": f"GATEWAY_{self.prefix.upper()}",
            "cls": "".join(part.title() for part in self.plain.split("-")),
            "title": self.plain.replace("-", " ").title(),
            "versions": _versions(),
        }


def write_project(text: str, parent: Path) -> Path:
    """Write a project into a new folder `gateway-NAME`, and return it.

    Raises `SettingsError` for a bad name, or where there is such a folder.
    """
    name = Name.of(text)
    folder = parent / f"gateway-{name.plain}"
    try:
        folder.mkdir()
    except FileExistsError:
        raise SettingsError(f"There is a {folder.name} here already.") from None
    except OSError as error:
        raise SettingsError(f"{folder.name} cannot be made here ({error.strerror}).") from None
    templates = files("gateway.cli.new_plugin") / "project"
    for template, place in _FILES.items():
        path = folder / place.format(module=name.module, prefix=name.prefix)
        path.parent.mkdir(exist_ok=True)
        written = Template((templates / template).read_text("utf-8")).substitute(name.words)
        path.write_text(written, "utf-8")
    return folder


def _versions() -> str:
    """Return the versions of the gateway that promise what this one does."""
    major, minor, *_ = (int(part) for part in VERSION.split("."))
    return f">={major}.{minor},<{major}.{minor + 1}" if major == 0 else f">={VERSION},<{major + 1}"
