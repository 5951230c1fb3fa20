"""Which plugins the operator has disabled by `GATEWAY_PLUGINS_DISABLED`."""

import difflib
from collections.abc import Collection, Iterable

from gateway.errors import SettingsError


def find_disabled(chosen: Iterable[str], plugins: Collection[str]) -> set[str]:
    """Return those of the plugins that the operator names, as modules or as distributions.

    `gateway_acme` and `gateway-acme` are the same plugin. Raises `SettingsError` for a name that
    no plugin has.
    """
    known = {_module_of(plugin): plugin for plugin in plugins}
    found = set()
    for name in filter(None, (each.strip() for each in chosen)):
        module = name.replace("-", "_")
        if module not in known:
            near = difflib.get_close_matches(module, known, 1)
            hint = f"Did you mean {near[0]}?" if near else f"Installed are {', '.join(known)}."
            raise SettingsError(
                f"GATEWAY_PLUGINS_DISABLED names {name}, but no plugin has that name. {hint}"
            )
        found.add(known[module])
    return found


def _module_of(plugin: str) -> str:
    """Return the module in the value of an entry point, such as `gateway_acme:plugin`."""
    return plugin.partition(":")[0].strip()
