"""Loads plugins: those of the entry-point group `gateway`, and any handed in by tests."""

import importlib
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import attrs
import pluggy
import structlog

from gateway import hookspecs
from gateway.catalog import Catalog
from gateway.contracts import (
    AuthorizationVerifier,
    PluginContext,
    Settler,
    TransferVerifier,
)
from gateway.errors import SettingsError
from gateway.settings import Settings

GROUP = "gateway"
# A source checkout that was never installed has no entry points of its own; these are they.
BUNDLED = (
    "gateway_x402",
    "gateway_usdc_direct",
    "gateway_local_settler",
    "gateway_facilitator_settler",
    "gateway_sandbox_image",
    "gateway_documents",
    "gateway_openai",
)
_log = structlog.get_logger()


@attrs.frozen(kw_only=True)
class LoadedPlugin:
    """One plugin, or why it was left out."""

    name: str
    source: str  # distribution and version
    problem: str | None = None


class PluginManager:
    """One per app: every plugin's hooks, called in the order of registration."""

    def __init__(self, plugins: Iterable[object] = ()) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self.loaded: list[LoadedPlugin] = []
        found = {entry.value: entry for entry in entry_points(group=GROUP)}
        for module in dict.fromkeys((*BUNDLED, *found)):
            self._load(module, found.get(module))
        for plugin in plugins:
            name = getattr(plugin, "__name__", type(plugin).__name__)
            self._manager.register(plugin, name=name)
            self.loaded.append(LoadedPlugin(name=name, source="given to create_app"))

    def _load(self, module: str, entry: EntryPoint | None) -> None:
        """Import one plugin; a third party's that fails is left out with one clear line."""
        source = "bundled"
        if module not in BUNDLED and entry is not None and entry.dist is not None:
            source = f"{entry.dist.name} {entry.dist.version}"
        try:
            plugin = entry.load() if entry is not None else importlib.import_module(module)
            self._manager.register(plugin, name=module)
        except Exception as error:
            if module in BUNDLED:
                raise
            problem = f"{type(error).__name__}: {error}"
            _log.error("plugin.left_out", plugin=module, source=source, error=problem)
            self.loaded.append(LoadedPlugin(name=module, source=source, problem=problem))
            return
        self.loaded.append(LoadedPlugin(name=module, source=source))

    def _each(self, hook: str, register: Any, **arguments: Any) -> None:
        """Call one hook plugin by plugin, so that each registration is known by its plugin."""
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            given = {"register": register(implementation.plugin_name), **arguments}
            implementation.function(*(given[name] for name in implementation.argnames))

    def catalog(self, settings: Settings) -> Catalog:
        """Return what the plugins put on sale."""
        catalog = Catalog(settings.endpoints)
        self._each(
            "register_endpoints",
            lambda plugin: lambda endpoint, provider: catalog.register(endpoint, provider, plugin),
            settings=settings,
        )
        catalog.check_overrides()
        return catalog

    def authorization_verifier(self, context: PluginContext) -> AuthorizationVerifier:
        """Return the one verifier of the X402 flow."""
        verifier: AuthorizationVerifier = self._only("register_authorization_verifier", context)
        return verifier

    def transfer_verifier(self, context: PluginContext) -> TransferVerifier:
        """Return the one verifier of the direct flow."""
        verifier: TransferVerifier = self._only("register_transfer_verifier", context)
        return verifier

    def _only(self, hook: str, context: PluginContext) -> Any:
        found: list[Any] = []
        self._each(hook, lambda _: found.append, context=context)
        if len(found) != 1:
            raise SettingsError(
                f"{len(found)} plugins implement {hook}, but exactly one must. "
                "`gateway plugins` lists them; uninstall what you do not want."
            )
        return found[0]

    def settler(self, context: PluginContext) -> Settler:
        """Return the settler that `GATEWAY_SETTLEMENT` names."""
        offered: dict[str, Any] = {}
        self._each("register_settlers", lambda _: offered.__setitem__, context=context)
        name = context.settings.settlement
        if name not in offered:
            raise SettingsError(
                f"GATEWAY_SETTLEMENT is {name!r}, but there are: {', '.join(sorted(offered))}."
            )
        settler: Settler = offered[name]()
        return settler
