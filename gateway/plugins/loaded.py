"""The record of one plugin, and its hooks."""

from types import FunctionType, ModuleType
from typing import Any

import attrs
import pluggy


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


class Hooks(pluggy.PluginManager):
    """pluggy that examines only the functions of a module."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        """Return the options of a hook, or None for another name."""
        # A module's hooks are functions. Pluggy would also examine everything that the module
        # imports, a third of the time of loading plugins.
        if isinstance(plugin, ModuleType) and not isinstance(vars(plugin).get(name), FunctionType):
            return None
        return super().parse_hookimpl_opts(plugin, name)
