"""The installed plugins, their commands and settings, and the disabled ones.

Nothing here imports a plugin.
"""

import difflib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple, cast

from gateway.errors import SettingsError, text_of
from gateway.installed import entry_points, is_disabled, modules_of, plugin_of

if TYPE_CHECKING:
    # `gateway --help` reads no settings.
    from gateway.settings import SectionOffer, Settings

# A gateway sells without these.
OPTIONAL_PARTS = (
    "gateway_operator",
    "gateway_bucket",
    "gateway_backups",
    "gateway_nodes",
    "gateway_webhooks",
    "gateway_mcp",
    "gateway_shop",
    "gateway_uvicorn",
    "gateway_openapi",
    "gateway_idle",
)
# Bundled plugins are listed, because a source checkout without installation has no entry points.
BUNDLED = (
    "gateway_x402",
    "gateway_mpp",
    "gateway_usdc_direct",
    "gateway_local_settler",
    "gateway_facilitator_settler",
    "gateway_sandbox_image",
    "gateway_documents",
    "gateway_openai",
    "gateway_gemini",
    "gateway_fal",
    "gateway_kie",
    "gateway_replicate",
    "gateway_openrouter",
    "gateway_bfl",
    "gateway_mistral",
    "gateway_docling",
    "gateway_comfyui",
    "gateway_llamaparse",
    "gateway_azure_documents",
    "gateway_http",
    "gateway_media",
    "gateway_pictures",
    "gateway_speech",
    *OPTIONAL_PARTS,
)
# Their command tables.
BUNDLED_COMMANDS = (
    "gateway_backups.commands:COMMANDS",
    "gateway_buyer.commands:COMMANDS",
    "gateway_check.commands:COMMANDS",
    "gateway_comfyui.commands:COMMANDS",
    "gateway_demo.commands:COMMANDS",
    "gateway_http.commands:COMMANDS",
    "gateway_mcp.commands:COMMANDS",
    "gateway_nodes.commands:COMMANDS",
    "gateway_operator.commands:COMMANDS",
    "gateway_shop.commands:COMMANDS",
)
# Their functions that run before the database is opened.
BUNDLED_BEFORE_OPEN = ("gateway_backups.opening:before_open", "gateway_nodes:before_open")
COMMANDS_GROUP = "gateway.commands"
_BEFORE_OPEN_GROUP = "gateway.before_open"
_OUR_METADATA = "generation_gateway-"


class PluginCommand(NamedTuple):
    """A command of a plugin."""

    plugin: str
    # Its place, as `module:name`.
    place: str
    # The first sentence of its help.
    sentence: str


def find_commands(own: Collection[str], warn: Callable[[str], None]) -> dict[str, PluginCommand]:
    """Return the plugins' commands by name. The first plugin with a name wins.

    Bundled plugins come first, then the others by name. `own` are the names of the gateway's own
    commands, which no plugin can take. `warn` gets a sentence about each ignored command.
    """
    found: dict[str, PluginCommand] = {}
    for table in _tables():
        plugin = plugin_of(table)
        try:
            commands = list(_read_table(table))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            warn(f"The commands of {plugin} are left out: {type(error).__name__}: {text_of(error)}")
            continue
        for name, place, sentence in commands:
            if name in own:
                warn(f"The command {name} of {plugin} is left out: the gateway has one itself.")
            elif name in found:
                first = found[name].plugin
                warn(f"The command {name} of {plugin} is left out: {first} has one, too.")
            else:
                found[name] = PluginCommand(plugin, place, sentence)
    return found


def prepare_database(settings: "Settings") -> None:
    """Let plugins replace or check the database before the gateway opens it.

    Each entry of the group `gateway.before_open` names a function that takes the settings. An
    error in it stops the start.
    """
    has_restore = bool(settings.plugin_values.get("restore"))
    if has_restore and is_disabled("gateway_backups", settings.plugins_disabled):
        raise SettingsError(
            "GATEWAY_RESTORE is set, but GATEWAY_PLUGINS_DISABLED names gateway_backups, which "
            "restores. Take it out of that list, or unset GATEWAY_RESTORE."
        )
    installed = sorted(entry.value for entry in entry_points(group=_BEFORE_OPEN_GROUP))
    for place in dict.fromkeys((*BUNDLED_BEFORE_OPEN, *installed)):
        if not is_disabled(plugin_of(place), settings.plugins_disabled):
            resolve_name(place)(settings)


def find_section(plugin: str, *, disabled: bool = False) -> type | None:
    """Return the settings class of an optional part; None for one without settings.

    For a disabled plugin, only the module `settings` is run.
    """
    place = f"{plugin}.settings"
    if plugin not in OPTIONAL_PARTS:
        return None
    try:
        module = _run_alone(place) if disabled else import_module(place)
    except ModuleNotFoundError as error:
        if error.name in (None, place):
            return None
        raise
    return cast(type, vars(module)["SECTION"])


def find_sections(settings: "Settings") -> "list[SectionOffer]":
    """Return the settings of the optional parts that are not disabled, with checked values.

    The server calls this first, before any plugin is loaded. Raises `SettingsError` for a wrong
    value.
    """
    from gateway.settings import SectionOffer  # noqa: PLC0415 - as above

    found = []
    for plugin in OPTIONAL_PARTS:
        if is_disabled(plugin, settings.plugins_disabled):
            continue
        if (kind := find_section(plugin)) is not None:
            settings.section("", kind)
            found.append(SectionOffer(plugin, "", kind))
    return found


def find_disabled(chosen: Iterable[str], plugins: Collection[str]) -> set[str]:
    """Return the plugins that the operator names, by module or distribution.

    Raises `SettingsError` for an unknown name. Plugins with commands only are not in `plugins`, but
    may be named.
    """
    names = modules_of(chosen)
    if not names:
        return set()
    known = {_module_of(plugin): plugin for plugin in plugins}
    known |= {plugin: plugin for plugin in map(plugin_of, _tables()) if plugin not in known}
    for module, name in names.items():
        if module not in known:
            near = difflib.get_close_matches(module, known, 1)
            hint = f"Did you mean {near[0]}?" if near else f"Installed are {', '.join(known)}."
            raise SettingsError(
                f"GATEWAY_PLUGINS_DISABLED names {name}, but no plugin has that name. {hint}"
            )
    return {known[module] for module in names}


def _module_of(place: str) -> str:
    """Return the module of an entry point's value, such as `gateway_acme:plugin`."""
    return place.partition(":")[0].strip()


def _tables() -> list[str]:
    """Return the command tables, as `module:name`."""
    # Importing `importlib.metadata` takes 45 ms, half the time of `gateway --help`, and most
    # gateways have no other plugin with commands.
    if not any(map(_has_tables, sys.path)):
        return list(BUNDLED_COMMANDS)
    from importlib.metadata import entry_points  # noqa: PLC0415

    installed = sorted(entry.value for entry in entry_points(group=COMMANDS_GROUP))
    return list(dict.fromkeys((*BUNDLED_COMMANDS, *installed)))


def _has_tables(folder: str) -> bool:
    """Whether a distribution in this folder, other than the gateway, has commands."""
    return any(
        f"[{COMMANDS_GROUP}]".encode() in file.read_bytes()
        for file in Path(folder).glob("*.dist-info/entry_points.txt")
        if not file.parent.name.startswith(_OUR_METADATA)
    )


def _read_table(table: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name, place, sentence) of each command in a table."""
    name = table.partition(":")[2].strip()
    commands: Mapping[str, tuple[str, str]] = getattr(_run_alone(_module_of(table)), name)
    for command, (place, sentence) in commands.items():
        if not all(isinstance(text, str) for text in (command, place, sentence)):
            raise TypeError(f"{table} has a row that is not made of strings")
        yield command, place, sentence


def _run_alone(module: str) -> object:
    """Run a module without importing its package, which may take a second."""
    names = module.split(".")
    spec = find_spec(names[0])
    for depth in range(2, len(names) + 1):
        if spec is None:
            break
        spec = PathFinder.find_spec(".".join(names[:depth]), spec.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {module}")
    found = module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
