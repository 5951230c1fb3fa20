"""The record of one plugin, its hooks, and the error if two plugins register the same thing."""

from types import FunctionType, ModuleType
from typing import Any

import attrs
import pluggy

from gateway.errors import SettingsError


@attrs.frozen(kw_only=True)
class LoadedPlugin:
    """One plugin; `problem` is the reason why it was left out."""

    name: str
    # Distribution and version.
    source: str
    module: str
    # The hooks that it implements.
    hooks: tuple[str, ...] = ()
    problem: str | None = None
    # By the operator, so that it is not even imported.
    is_disabled: bool = False

    @property
    def full_name(self) -> str:
        """The name of the plugin and its source."""
        return f"{self.name} ({self.source})"


def second_error(what: str, first: LoadedPlugin, second: LoadedPlugin) -> SettingsError:
    """Return the error if two plugins register the same thing."""
    return SettingsError(
        f"{what} is registered by {first.full_name} and by {second.full_name}. "
        "Uninstall one of the two."
    )


class Hooks(pluggy.PluginManager):
    """pluggy that examines only the functions of a module."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        """Return the options of a hook, or None for another name."""
        # A module's hooks are functions. Pluggy would also examine everything that the module
        # imports, a third of the time of loading plugins.
        if isinstance(plugin, ModuleType) and not isinstance(vars(plugin).get(name), FunctionType):
            return None
        return super().parse_hookimpl_opts(plugin, name)
