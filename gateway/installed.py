"""What is installed, found by entry points without importing a plugin."""

import functools
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gateway.errors import SettingsError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

# A source checkout that was never installed has no entry points, so the bundled ones are listed: by
# the group and the scheme of an address, or a name.
BUNDLED_OPENERS = {
    "gateway.limits": {
        "redis": "gateway_nodes:open_limits",
        "rediss": "gateway_nodes:open_limits",
    },
    "gateway.outputs": {"s3": "gateway_bucket:open_outputs"},
    "gateway.servers": {"uvicorn": "gateway_uvicorn:open_server"},
    "gateway.stores": {
        "postgres": "gateway_nodes:open_store",
        "postgresql": "gateway_nodes:open_store",
    },
}


def entry_points(group: str) -> "EntryPoints":
    """Return the entry points of a group.

    Reading the metadata of all packages takes some 10 ms, and a start needs two groups: it is
    cached until a folder of packages changes.
    """
    folders = [Path(folder) for folder in sys.path]
    changed = tuple((folder, folder.stat().st_mtime_ns) for folder in folders if folder.is_dir())
    return _select(changed, group)


# Python 3.11 takes milliseconds to select a group, and each read of a plugin asks for two.
@functools.lru_cache(maxsize=64)
def _select(folders: tuple[tuple[Path, int], ...], group: str) -> "EntryPoints":
    found: EntryPoints = _read(folders).select(group=group)
    return found


@functools.lru_cache(maxsize=8)
def _read(_folders: tuple[tuple[Path, int], ...]) -> Any:
    # `gateway --help` reads no metadata, and the import takes 45 ms.
    import importlib.metadata  # noqa: PLC0415

    # Python 3.11 has another type for all groups together; both have `select`.
    return importlib.metadata.entry_points()


def find_opener(group: str, value: str) -> str:
    """Return the place of a plugin's function for a variable's value, as `module:function`.

    The value is the name of a server, or an address whose scheme counts. Empty without such a
    plugin.
    """
    name = value if group == "gateway.servers" else urlsplit(value).scheme
    return BUNDLED_OPENERS[group].get(name) or next(
        (one.value for one in entry_points(group) if one.name == name), ""
    )


def check_scheme(group: str, variable: str, value: str) -> str:
    """Return the place of the function for an address; raises `SettingsError` without a plugin."""
    place = find_opener(group, value)
    plugin = plugin_of(place)
    if plugin and find_spec(plugin) is not None:
        return place
    # A mistyped address may be a password, so only its scheme is shown.
    name, known = urlsplit(value).scheme or "it", ", ".join(BUNDLED_OPENERS[group])
    wanted = plugin or f"one with an entry point {name} in the group {group}"
    raise SettingsError(
        f"{variable} needs a plugin for {name}, and none is installed. Install {wanted}, or set "
        f"an address of {known}."
    )


def check_opener(group: str, variable: str, value: str, disabled: Iterable[str]) -> str:
    """Return the place of the function for an address, as `check_scheme` does.

    Raises `SettingsError` if no plugin has one, or a disabled one does.
    """
    place = check_scheme(group, variable, value)
    plugin = plugin_of(place)
    if is_disabled(plugin, disabled):
        raise SettingsError(
            f"{variable} needs {plugin}, but GATEWAY_PLUGINS_DISABLED names it. Take it out of "
            f"that list, or unset {variable}."
        )
    return place


def plugin_of(place: str) -> str:
    """Return the plugin of a place, such as `gateway_acme.commands:COMMANDS`."""
    return place.partition(":")[0].strip().partition(".")[0]


def load_opener(
    group: str, variable: str, value: str, disabled: Iterable[str]
) -> Callable[..., Any]:
    """Return the function of a plugin for a variable's value; raises as `check_opener` does."""
    opener: Callable[..., Any] = resolve_name(check_opener(group, variable, value, disabled))
    return opener


def is_disabled(plugin: str, chosen: Iterable[str]) -> bool:
    """Whether the operator names this plugin, as a module or as a distribution."""
    return plugin in modules_of(chosen)


def modules_of(chosen: Iterable[str]) -> dict[str, str]:
    """Return the names by modules: `gateway_acme` and `gateway-acme` are the same plugin."""
    names = filter(None, (each.strip() for each in chosen))
    return {name.replace("-", "_"): name for name in names}
