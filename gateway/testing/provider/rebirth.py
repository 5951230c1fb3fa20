"""A plugin imported anew, as a new process does: what its modules remembered is gone."""

import importlib
import sys
from types import ModuleType
from typing import Any

import attrs


@attrs.define
class Rebirth:
    """Imports a plugin anew, and gives the tests back in the end what they had imported."""

    _before: dict[str, ModuleType] = attrs.field(factory=dict, init=False)

    def of(self, plugin: Any) -> Any:
        """Return the plugin as a new process would import it; one that is no module as it is."""
        name = plugin.__name__
        if sys.modules.get(name) is not plugin:
            return plugin
        own = [module for module in sys.modules if f"{module}.".startswith(f"{name}.")]
        before = {module: sys.modules.pop(module) for module in own}
        self._before = self._before or before
        return importlib.import_module(name)

    def undo(self) -> None:
        """Put back what was imported before the first."""
        sys.modules.update(self._before)
