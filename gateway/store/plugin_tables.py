"""Plugin tables: SQL migrations of plugins, and their rules.

An entry point of the group `gateway.migrations` maps the plugin's table prefix to the package with
its `sqlite` and `postgres` folders. The database opens before plugins load, so no plugin is
imported here. Migrations of disabled plugins are applied too, so enabling one later needs no extra
step.

The rules catch mistakes. They are not a sandbox: a plugin's code may do anything.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import attrs

from gateway.errors import SettingsError
from gateway.installed import entry_points

GROUP = "gateway.migrations"
# `meta.schema_base` of databases that this series of migrations can read. It changes only before
# the first release.
SCHEMA_BASE = "0.1.0-2"
# A source checkout that was never installed has no entry points.
BUNDLED_TABLES = {"shop": "gateway_shop.migrations", "webhooks": "gateway_webhooks.migrations"}
Database = Literal["sqlite", "postgres"]

_NAME = re.compile(r"[a-z][a-z_]*")
_FILE = re.compile(r"(\d{4})_\w+\.sql")
_COMMENT_OR_TEXT = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)
_STATEMENT = re.compile(
    r"(?:CREATE TABLE|CREATE (?:UNIQUE )?INDEX (?P<index>\w+) ON|ALTER TABLE|DROP TABLE|DROP INDEX"
    r"|INSERT INTO|UPDATE|DELETE FROM) (?P<name>\w+)(?![\w.])",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\bREFERENCES (\w+) ?(\([^)]*\))?", re.IGNORECASE)
_NEW_NAME = re.compile(r"\bRENAME TO (\w+)", re.IGNORECASE)
# The gateway's tables that plugins may reference, because their keys never change.
_REFERABLE = ("tasks", "payments")
_RULE = (
    "A plugin's migration may only create, alter and fill tables and indexes with the plugin's "
    "prefix, and reference these, tasks(id) and payments(id)"
)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PluginFile:
    """One SQL migration of a plugin."""

    plugin: str
    number: int
    sql: str

    @property
    def title(self) -> str:
        """The plugin and number, for messages."""
        return f"{self.plugin} {self.number:04}"


def find_files(database: Database, own_sql: Iterable[str]) -> list[PluginFile]:
    """Return all plugins' migrations for a database, in the order to apply them.

    `own_sql` is the SQL of the gateway's own migrations. Raises `SettingsError` for a broken rule.
    """
    packages = _find_packages()
    taken = re.findall(r"CREATE TABLE (\w+)", "\n".join(own_sql))
    for name in packages:
        _check_name(name, [*taken, *(f"{other}_" for other in packages if other != name)])
    files = [file for name, package in packages.items() for file in _read(name, package, database)]
    for file in files:
        _check_statements(file)
    return files


def pending(known: Sequence[PluginFile], applied: Collection[tuple[str, int]]) -> list[PluginFile]:
    """Return the migrations that were not applied yet.

    Raises `SettingsError` for a new number below one already applied.
    """
    waiting = [file for file in known if (file.plugin, file.number) not in applied]
    for file in waiting:
        newest = max((number for plugin, number in applied if plugin == file.plugin), default=0)
        if file.number < newest:
            raise SettingsError(
                f"The plugin migration {file.title} is new, but {newest:04} was already applied. "
                "Install the plugin's previous version, or one that numbers new migrations higher."
            )
    return waiting


def failed(file: PluginFile, error: Exception) -> SettingsError:
    """Return the error for a migration that the database rejects."""
    reason = str(error).strip().partition("\n")[0]
    return SettingsError(
        f"A plugin's migration failed ({file.title}: {reason}). Install another version of the "
        "plugin, or uninstall it."
    )


def _find_packages() -> dict[str, str]:
    """Return the packages by table prefix."""
    found = dict(BUNDLED_TABLES)
    for entry in sorted(entry_points(GROUP), key=lambda entry: entry.name):
        if found.setdefault(entry.name, entry.value) != entry.value:
            raise SettingsError(
                f"Two plugins use the table prefix {entry.name}: {found[entry.name]} and "
                f"{entry.value}. Uninstall one of them."
            )
    return found


def _check_name(name: str, taken: Iterable[str]) -> None:
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"A plugin uses the table prefix {name!r}: only lower-case letters and _ are allowed."
        )
    clash = next((table for table in taken if table.startswith(f"{name}_")), None)
    if clash is not None:
        raise SettingsError(
            f"A plugin uses the table prefix {name}, but {clash.rstrip('_')} is already taken."
        )


def _read(plugin: str, package: str, database: Database) -> list[PluginFile]:
    """Read migrations, whose numbers must be the same for both databases."""
    folder = _find_folder(plugin, package)
    files = {one: _numbered(plugin, folder / one) for one in ("sqlite", "postgres")}
    if list(files["sqlite"]) != list(files["postgres"]):
        raise SettingsError(
            f"The plugin {plugin} needs the same migrations for SQLite and PostgreSQL ({folder})."
        )
    return [
        PluginFile(plugin=plugin, number=number, sql=path.read_text("utf-8"))
        for number, path in files[database].items()
    ]


def _find_folder(plugin: str, package: str) -> Path:
    """Find a package's folder without importing it."""
    top, *inner = package.split(".")
    spec = find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError(
            f"The package {package} with the migrations of {plugin} is not installed."
        )
    return Path(spec.submodule_search_locations[0], *inner)


def _numbered(plugin: str, folder: Path) -> dict[int, Path]:
    found: dict[int, Path] = {}
    for path in sorted(folder.glob("*.sql")):
        match = _FILE.fullmatch(path.name)
        if match is None or int(match[1]) in found:
            raise SettingsError(
                f"The migration {path.name} of the plugin {plugin} needs a name such as "
                "0001_orders.sql, with a unique number."
            )
        found[int(match[1])] = path
    return found


def _check_statements(file: PluginFile) -> None:
    plain = _COMMENT_OR_TEXT.sub(lambda found: "''" if found[0][0] == "'" else " ", file.sql)
    for statement in plain.split(";"):
        words = " ".join(statement.split())
        if words and not _is_allowed(words, f"{file.plugin}_"):
            raise SettingsError(f"{_RULE}. {file.title} has: {words[:80]}")


def _is_allowed(statement: str, prefix: str) -> bool:
    match = _STATEMENT.match(statement)
    # PostgreSQL's dollar-quoted strings were not removed above, so reject them.
    if match is None or "$" in statement:
        return False
    names = [name for name in match.groups() if name is not None]
    names += _NEW_NAME.findall(statement)
    return all(name.startswith(prefix) for name in names) and all(
        table.startswith(prefix) or (table in _REFERABLE and columns.replace(" ", "") == "(id)")
        for table, columns in _REFERENCE.findall(statement)
    )
