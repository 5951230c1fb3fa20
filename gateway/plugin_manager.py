"""Loads plugins: those of the entry-point group `gateway`, and any handed in by tests.

A third party's plugin that cannot be imported, that fails in a hook, or that registers what cannot
be right is left out with one clear line, and everything else starts. What the operator must decide
stops the start with a `SettingsError`: a wrong setting, a slug that two plugins sell.
"""

import difflib
import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import attrs
import pluggy
import structlog

from gateway import hookspecs
from gateway.catalog import Catalog
from gateway.contracts import (
    AuthorizationVerifier,
    Clock,
    PluginContext,
    Settler,
    TransferVerifier,
)
from gateway.errors import SettingsError
from gateway.redaction import Redactor, secrets_of
from gateway.registration import (
    Offers,
    endpoint_offer,
    section_offer,
    settler_offer,
    verifier_offer,
)
from gateway.settings import Settings, names_of
from gateway.unclaimed import refuse_unclaimed, tell_of_unclaimed

GROUP = "gateway"
BUNDLED_SOURCE = "bundled"
GIVEN_SOURCE = "given to create_app"
# A source checkout that was never installed has no entry points of its own; these are they.
BUNDLED = (
    "gateway_x402",
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
    "gateway_bfl",
    "gateway_mistral",
    "gateway_docling",
    "gateway_llamaparse",
    "gateway_azure_documents",
)
_MAX_PROBLEM_CHARS = 300
_log = structlog.get_logger()


@attrs.frozen(kw_only=True)
class LoadedPlugin:
    """One plugin, or why it was left out."""

    name: str
    source: str  # distribution and version
    module: str
    hooks: tuple[str, ...] = ()  # that it implements
    problem: str | None = None

    @property
    def full_name(self) -> str:
        """The plugin with where it comes from."""
        return f"{self.name} ({self.source})"


class PluginManager:
    """One per app: every plugin's hooks, called in the order of registration."""

    def __init__(self, plugins: Iterable[object] = ()) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._plugins: dict[str, LoadedPlugin] = {}
        found = {entry.value: entry for entry in entry_points(group=GROUP)}
        for module in dict.fromkeys((*BUNDLED, *found)):
            self._load(module, found.get(module))
        for plugin in plugins:
            name = getattr(plugin, "__name__", type(plugin).__name__)
            module = name if isinstance(plugin, ModuleType) else type(plugin).__module__
            self._plugins[name] = LoadedPlugin(name=name, source=GIVEN_SOURCE, module=module)
            self._register(name, plugin)

    @property
    def loaded(self) -> list[LoadedPlugin]:
        """Every plugin, also those that were left out."""
        return list(self._plugins.values())

    def modules(self) -> dict[str, str]:
        """Return whose a module is: its name to the plugin's."""
        return {plugin.module: plugin.name for plugin in self.loaded}

    def _load(self, name: str, entry: EntryPoint | None) -> None:
        """Import one plugin."""
        source = BUNDLED_SOURCE
        if name not in BUNDLED and entry is not None and entry.dist is not None:
            source = f"{entry.dist.name} {entry.dist.version}"
        module = name.partition(":")[0].strip()
        self._plugins[name] = LoadedPlugin(name=name, source=source, module=module)
        try:
            plugin = entry.load() if entry is not None else importlib.import_module(module)
            self._register(name, plugin)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            self._leave_out(name, error)

    def _register(self, name: str, plugin: object) -> None:
        """Take a plugin's hooks; raises `ValueError` for one that there is not."""
        self._manager.register(plugin, name=name)
        callers = self._manager.get_hookcallers(plugin) or []
        for caller in callers:
            if not caller.has_spec():
                near = difflib.get_close_matches(caller.name, vars(hookspecs), 1)
                hint = f" Did you mean {near[0]}?" if near else ""
                raise ValueError(f"There is no hook {caller.name}.{hint}")
        hooks = tuple(caller.name for caller in callers)
        self._plugins[name] = attrs.evolve(self._plugins[name], hooks=hooks)

    def _leave_out(self, name: str, error: BaseException) -> None:
        """Go on without a third party's plugin; any other's error is raised."""
        plugin = self._plugins[name]
        if plugin.source in (BUNDLED_SOURCE, GIVEN_SOURCE):
            raise error
        if self._manager.has_plugin(name):
            self._manager.unregister(name=name)
        problem = " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_PROBLEM_CHARS]
        self._plugins[name] = attrs.evolve(plugin, problem=problem)
        _log.error("plugin.left_out", plugin=name, source=plugin.source, error=problem)

    def _offers(
        self, hook: str, offer: Callable[..., tuple[str, Any]], **arguments: Any
    ) -> Iterator[tuple[LoadedPlugin, Any]]:
        """Yield what each plugin registers by a hook; nothing of one that fails on the way.

        `offer` takes what a plugin calls `register` with, and returns it with a name that the
        plugin may use once; it raises where that cannot be right.
        """
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            name, offers = implementation.plugin_name, Offers(offer)
            given = {"register": offers.register, **arguments}
            try:
                implementation.function(*(given[each] for each in implementation.argnames))
            except SettingsError:
                raise
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
                self._leave_out(name, error)
                continue
            for one in offers.taken.values():
                yield self._plugins[name], one

    def sections(self) -> dict[str, tuple[str, type]]:
        """Return the plugins' own settings: prefix to the plugin's name and its class."""
        found: dict[str, tuple[str, type]] = {}
        for plugin, (prefix, kind) in self._offers("register_settings", section_offer):
            other, _ = found.setdefault(prefix, (plugin.name, kind))
            if other != plugin.name:
                raise SettingsError(
                    f"Both {self._plugins[other].full_name} and {plugin.full_name} have settings "
                    f"named GATEWAY_{prefix.upper()}_…. Uninstall one of the two."
                )
        self._check_owners(found)
        return found

    def _check_owners(self, sections: dict[str, tuple[str, type]]) -> None:
        """Raise `SettingsError` for a name of two plugins: each would read the other's secret."""
        owners: dict[str, str] = {}
        for prefix, (plugin, kind) in sections.items():
            for name in names_of(prefix, kind):
                other = owners.setdefault(name, plugin)
                if other != plugin:
                    raise SettingsError(
                        f"Both {self._plugins[other].full_name} and "
                        f"{self._plugins[plugin].full_name} have a setting "
                        f"GATEWAY_{name.upper()}. Uninstall one of the two."
                    )

    def _check_values(self, settings: Settings) -> None:
        """Raise `SettingsError`, or warn, of what is set and belongs to nobody."""
        known = {
            name for prefix, (_, kind) in self.sections().items() for name in names_of(prefix, kind)
        }
        if any(plugin.problem for plugin in self.loaded):  # it may be theirs
            tell_of_unclaimed(settings, known)
        else:
            refuse_unclaimed(settings, known)

    def catalog(
        self, settings: Settings, now: Clock = time.time, redactor: Redactor | None = None
    ) -> Catalog:
        """Return what the plugins put on sale; `redactor` learns their secrets.

        Raises `SettingsError` for a slug that two of them sell.
        """
        self._check_values(settings)
        redactor = redactor or Redactor()
        redactor.learn(secrets_of(settings, self.sections()))
        catalog = Catalog(settings.endpoints, now=now, places=settings.workers, redactor=redactor)
        sellers: dict[str, LoadedPlugin] = {}
        for plugin, (endpoint, provider) in self._offers(
            "register_endpoints", endpoint_offer, settings=settings
        ):
            first = sellers.setdefault(endpoint.slug, plugin)
            if first.name != plugin.name:
                raise SettingsError(
                    f"Slug {endpoint.slug} is registered by {first.full_name} and by "
                    f"{plugin.full_name}. Uninstall one of the two."
                )
            catalog.register(endpoint, provider, plugin.name)
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
        found = [verifier for _, verifier in self._offers(hook, verifier_offer, context=context)]
        if len(found) != 1:
            raise SettingsError(
                f"{len(found)} plugins implement {hook}, but exactly one must. "
                "`gateway plugins` lists them; uninstall what you do not want."
            )
        return found[0]

    def settler(self, context: PluginContext) -> Settler:
        """Return the settler that `GATEWAY_SETTLEMENT` names."""
        offers = self._offers("register_settlers", settler_offer, context=context)
        offered = dict(offer for _, offer in offers)
        name = context.settings.settlement
        if name not in offered:
            raise SettingsError(
                f"GATEWAY_SETTLEMENT is {name!r}, but there are: {', '.join(sorted(offered))}."
            )
        settler: Settler = offered[name]()
        return settler
