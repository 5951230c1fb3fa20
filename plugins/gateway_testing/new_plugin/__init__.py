"""Generates the project of `gateway plugins new`: a provider of one of four kinds, with tests.

The folder `common` has the files of all kinds; each kind has a folder of its own. The command
itself is in `gateway_check.commands.plugins`.
"""

import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

import attrs

from gateway.errors import SettingsError
from gateway.plugins.installed import BUNDLED
from gateway.version import VERSION

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_CHARS = 40
# Template to path in the project.
_COMMON = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "gitignore.txt": ".gitignore",
}
_OWN = {
    "plugin.py.txt": "src/{module}.py",
    "test_plugin.py.txt": "tests/test_{prefix}.py",
    "toy_api.py.txt": "toy_api.py",
}


@attrs.frozen(kw_only=True)
class Kind:
    """A kind of plugin, in the words of its README and pyproject.toml."""

    sells: str

    # The suffix of the slug.
    slug: str
    price: str
    unit: str


KINDS = {
    "picture": Kind(sells="Pictures", slug="picture", price="0.05", unit="picture"),
    "jobs": Kind(sells="Pictures", slug="picture", price="0.05", unit="picture"),
    "document": Kind(sells="Parsed documents", slug="document", price="0.01", unit="page"),
    "edit": Kind(sells="Edited pictures", slug="edit", price="0.05", unit="edit"),
}
"""The kinds of plugins, by folder name."""


@attrs.frozen
class Name:
    """A plugin's name, such as `acme` or `acme-fast`, in every form that the project uses."""

    plain: str

    @classmethod
    def of(cls, text: str) -> "Name":
        """Return the name without a leading `gateway-`; raises `SettingsError` if invalid."""
        plain = text.removeprefix("gateway-")
        if not _NAME.fullmatch(plain) or len(plain) > _MAX_CHARS or keyword.iskeyword(plain):
            raise SettingsError(
                f"{text!r} is not a valid plugin name: use lower-case letters, digits and "
                "hyphens, starting with a letter. Example: gateway plugins new acme"
            )
        name = cls(plain)
        if name.module in BUNDLED:
            raise SettingsError(
                f"{name.module} is a bundled plugin. Choose another name: "
                f"gateway plugins new my-{plain}"
            )
        return name

    @property
    def module(self) -> str:
        """The name of the Python module."""
        return f"gateway_{self.prefix}"

    @property
    def prefix(self) -> str:
        """The prefix of the plugin's settings."""
        return self.plain.replace("-", "_")

    @property
    def words(self) -> dict[str, str]:
        """Return the values of the templates' placeholders."""
        return {
            "name": self.plain,
            "module": self.module,
            "prefix": self.prefix,
            "variable": f"GATEWAY_{self.prefix.upper()}",
            "cls": "".join(part.title() for part in self.plain.split("-")),
            "title": self.plain.replace("-", " ").title(),
            "versions": _compatible_versions(),
        }


def write_project(text: str, parent: Path, kind: str = "picture") -> Path:
    """Write a project of one of `KINDS` into a new folder `gateway-NAME`, and return the folder.

    Raises `SettingsError` for an invalid name, or if the folder exists or cannot be created.
    """
    name = Name.of(text)
    folder = parent / f"gateway-{name.plain}"
    try:
        folder.mkdir()
    except FileExistsError:
        raise SettingsError(
            f"The folder {folder.name} already exists here. Choose another name, or remove it."
        ) from None
    except OSError as error:
        raise SettingsError(
            f"The folder {folder.name} cannot be created here ({error.strerror})."
        ) from None
    words = name.words | attrs.asdict(KINDS[kind])
    for templates, places in (("common", _COMMON), (kind, _OWN)):
        for template, place in places.items():
            path = folder / place.format(module=name.module, prefix=name.prefix)
            path.parent.mkdir(exist_ok=True)
            source = files("gateway_testing.new_plugin") / templates / template
            path.write_text(Template(source.read_text("utf-8")).substitute(words), "utf-8")
    return folder


def _compatible_versions() -> str:
    major, minor, *_ = (int(part) for part in VERSION.split("."))
    return f">={major}.{minor},<{major}.{minor + 1}" if major == 0 else f">={VERSION},<{major + 1}"
