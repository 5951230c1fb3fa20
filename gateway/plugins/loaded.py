"""The record of one plugin, and its hooks."""

import difflib
from types import FunctionType, ModuleType
from typing import Any

import attrs
import pluggy

from gateway.plugins import hookspecs


@attrs.frozen(kw_only=True, eq=False, repr=False)
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

    def add(self, plugin: object, name: str) -> tuple[str, ...]:
        """Register a plugin and return the names of its hooks.

        Raises `ValueError` for a hook that does not exist, or that takes other arguments.
        """
        self.register(plugin, name=name)
        callers = self.get_hookcallers(plugin) or []
        for caller in callers:
            if not caller.has_spec():
                near = difflib.get_close_matches(caller.name, vars(hookspecs), 1)
                hint = f" Did you mean {near[0]}?" if near else ""
                raise ValueError(f"There is no hook {caller.name}.{hint}")
        for one in self.hook.gateway_notify.get_hookimpls():
            if one.plugin is plugin and one.argnames != ("alarm",):
                raise ValueError("gateway_notify takes one argument, which is named alarm")
        return tuple(caller.name for caller in callers)

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        """Return the options of a hook, or None for another name."""
        # A module's hooks are functions. Pluggy would also examine everything that the module
        # imports, a third of the time of loading plugins.
        if isinstance(plugin, ModuleType) and not isinstance(vars(plugin).get(name), FunctionType):
            return None
        return super().parse_hookimpl_opts(plugin, name)
