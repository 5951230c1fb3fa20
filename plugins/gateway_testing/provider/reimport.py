"""Imports a plugin again, as a new process does: its modules lose all their state."""

import importlib
import sys
from types import ModuleType
from typing import Any

import attrs


@attrs.define
class Reimporter:
    """Imports a plugin again, and restores the modules that the tests had imported at the end."""

    _before: dict[str, ModuleType] = attrs.field(factory=dict, init=False)

    def reimport(self, plugin: Any) -> Any:
        """Return the plugin, imported again; return it unchanged if it is not a module."""
        name = plugin.__name__
        if sys.modules.get(name) is not plugin:
            return plugin
        own = [module for module in sys.modules if f"{module}.".startswith(f"{name}.")]
        before = {module: sys.modules.pop(module) for module in own}
        self._before = self._before or before
        return importlib.import_module(name)

    def restore(self) -> None:
        """Restore the modules that were imported before the first `reimport`."""
        sys.modules.update(self._before)
